"""The layer plugin of tests/plugins/outside, compiled as somebody outside of the tree would: by plain g++,
against copies of the boundary's headers."""

import os
import shutil
import subprocess

from tests.apps import netcl_cli

HEADERS = ("netcl_base.hpp", "netcl_plugin.h", "netcl_plugin.hpp")


def build(folder):
    """Writes FOLDER/plugins/example; returns FOLDER/plugins, for --plugin-path."""
    plugins, sdk = os.path.join(folder, "plugins"), os.path.join(folder, "sdk")
    plugin = os.path.join(plugins, "example")
    os.makedirs(plugin)
    os.makedirs(sdk)
    for header in HEADERS:
        shutil.copy(netcl_cli.runfile("core/abi/" + header), sdk)
    shutil.copy(netcl_cli.runfile("tests/plugins/outside/plugin.json"), plugin)
    subprocess.run(
        ["g++", "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-gnu-unique", "-I", sdk,
         "-o", os.path.join(plugin, "libexample.so"), netcl_cli.runfile("tests/plugins/outside/scaled_tanh.cc")],
        check=True)
    return plugins


def digits_config(layers, **changes):
    """A configuration that trains these layers on the digits, in batches of 128."""
    config = {
        "model": {"input": [64], "layers": layers},
        "data": {"format": "csv", "train": netcl_cli.runfile("apps/examples/data/digits.csv.gz"),
                 "scale": 0.0625, "split": [0.8, 0.2]},
        "batch_size": 128, "seed": 1,
    }
    config.update(changes)
    return config
