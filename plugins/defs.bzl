"""How plugins are built: netcl_plugin() for one, plugins_dir() for a directory of them."""

load("@rules_cc//cc:defs.bzl", "cc_binary")

# Hidden symbols and no GNU_UNIQUE: two plugins never share code by accident.
PLUGIN_COPTS = [
    "-fvisibility=hidden",
    "-fno-gnu-unique",
]

# The entry point is the one export; for cc_binary, with additional_linker_inputs as below.
PLUGIN_EXPORTS = "//plugins:exports.lds"
PLUGIN_LINKOPTS = ["-Wl,--version-script=$(location %s)" % PLUGIN_EXPORTS]

# Core and apps know no plugin by name; they use //plugins:dir.
PLUGIN_USERS = [
    "//plugins:__subpackages__",
    "//tests:__subpackages__",
]

NetclPluginInfo = provider(
    doc = "One plugin: its id, and its files as a list of (path in the plugin's directory, File).",
    fields = ["id", "files"],
)

NetclPluginsDirInfo = provider(
    doc = "A directory of plugins: its files as a list of (path in the directory, File).",
    fields = ["files"],
)

def _copy(ctx, source, path):
    out = ctx.actions.declare_file(path)
    ctx.actions.run_shell(
        inputs = [source],
        outputs = [out],
        command = "cp -f \"$1\" \"$2\"",
        arguments = [source.path, out.path],
        mnemonic = "NetclPluginFile",
    )
    return out

def _plugin_impl(ctx):
    id = ctx.attr.plugin_id
    library = "lib%s.so" % id
    data = {}
    files = [(library, _copy(ctx, ctx.file.library, "%s/%s" % (id, library)))]
    for source in ctx.files.pack:
        files.append((source.basename, _copy(ctx, source, "%s/%s" % (id, source.basename))))
        if source.basename == "variants.json":
            data["variants"] = "variants.json"
    for source in ctx.files.tuned:
        path = "tuned/" + source.basename
        files.append((path, _copy(ctx, source, "%s/%s" % (id, path))))
        data["tuned"] = ["tuned/*.jsonl"]
    # Named plugin.json only where plugins_dir puts it, so that each plugin is found once.
    manifest = ctx.actions.declare_file("%s/manifest.json" % id)
    ctx.actions.write(manifest, json.encode_indent({
        "manifest": "netcl-plugin/1",
        "id": id,
        "version": ctx.attr.version,
        "name": ctx.attr.title,
        "license": ctx.attr.license,
        "kinds": ctx.attr.kinds,
        "library": {"linux-x86_64": library},
        "abi": {"major": 0, "minor": 4},
        "provides": json.decode(ctx.attr.provides),
        "data": data,
    }, indent = "  ") + "\n")
    files.append(("plugin.json", manifest))
    return [
        DefaultInfo(
            files = depset([f for _, f in files]),
            runfiles = ctx.runfiles(files = [f for _, f in files]),
        ),
        NetclPluginInfo(id = id, files = files),
    ]

_netcl_plugin = rule(
    implementation = _plugin_impl,
    attrs = {
        "plugin_id": attr.string(mandatory = True),
        "version": attr.string(mandatory = True),
        "title": attr.string(),
        "license": attr.string(),
        "kinds": attr.string_list(mandatory = True),
        "provides": attr.string(mandatory = True),
        "library": attr.label(allow_single_file = True, mandatory = True),
        "pack": attr.label_list(allow_files = True),
        "tuned": attr.label_list(allow_files = [".jsonl"]),
    },
)

def netcl_plugin(
        name,
        id,
        kinds,
        provides,
        srcs = [],
        deps = [],
        pack = [],
        tuned = [],
        version = "0.1.0",
        title = None,
        license = "Apache-2.0",
        copts = [],
        linkopts = [],
        visibility = PLUGIN_USERS):
    """Builds one plugin: its shared object, manifest and data, which plugins_dir() lays out.

    Args:
      name: the target.
      id: the plugin's id, unique among all plugins.
      kinds: of "kernels", "layer", "transport".
      provides: list of dicts, as in the manifest: {"op": ...}, {"family": ...}, {"layer": ...},
        {"transport": ...} with match, never, priority.
      srcs: C++ sources, with NETCL_PLUGIN in one of them. Empty for a kernel set that is pure
        data: the pack reader's compiled object is used.
      deps: cc_library targets to link in.
      pack: data files put into the plugin's directory: variants.json and .cl files.
      tuned: files of tuned records, which go with the plugin; //tests/apps:tuned_records_test checks
        them.
      version: the plugin's version.
      title: its name for people; default: id.
      license: SPDX expression.
      copts, linkopts: for the shared object.
      visibility: as usual; default: plugins and tests.
    """
    if srcs:
        library = name + "_so.so"
        cc_binary(
            name = library,
            srcs = srcs,
            copts = PLUGIN_COPTS + copts,
            additional_linker_inputs = [PLUGIN_EXPORTS],
            linkopts = PLUGIN_LINKOPTS + linkopts,
            linkshared = 1,
            visibility = ["//visibility:private"],
            deps = ["//core/abi"] + deps,
        )
        library = ":" + library
    else:
        if deps or copts or linkopts:
            fail("%s: deps, copts and linkopts need srcs" % name)
        library = "//plugins/pack:pack.so"
    _netcl_plugin(
        name = name,
        kinds = kinds,
        library = library,
        license = license,
        pack = pack,
        plugin_id = id,
        provides = json.encode(provides),
        title = title or id,
        tuned = tuned,
        version = version,
        visibility = visibility,
    )

def _plugins_dir_impl(ctx):
    out = []
    places = []
    seen = {}
    for target in ctx.attr.plugins:
        info = target[NetclPluginInfo]
        if info.id in seen:
            fail("two plugins have the id %s: %s and %s" % (info.id, seen[info.id], target.label))
        seen[info.id] = target.label
        for path, file in info.files:
            # Copies, no links: the host refuses files that lead out of a plugin's directory.
            out.append(_copy(ctx, file, "%s/%s/%s" % (ctx.label.name, info.id, path)))
            places.append(("%s/%s" % (info.id, path), out[-1]))
    return [
        DefaultInfo(files = depset(out), runfiles = ctx.runfiles(files = out)),
        NetclPluginsDirInfo(files = places),
    ]

plugins_dir = rule(
    implementation = _plugins_dir_impl,
    doc = "Collects plugins into <package>/<name>/<id>/, a directory for --plugin-path.",
    attrs = {"plugins": attr.label_list(providers = [NetclPluginInfo])},
)
