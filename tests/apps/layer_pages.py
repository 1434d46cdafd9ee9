"""The tables of all layer types in apps/README.md, as `netcl-app plugins inspect` gives them.

Usage: layer_pages.py [--update] README.md NETCL_APP. Exits with 1 if the README's are others.
"""

import difflib
import json
import subprocess
import sys

MARK = "<!-- layer pages -->\n"
INITIAL = ("init", "init_scale", "bias_init")


def run(app, *arguments):
    done = subprocess.run([app, "plugins", *arguments, "--json", "--quiet"], stdout=subprocess.PIPE,
                          check=True, universal_newlines=True)
    return json.loads(done.stdout)


def number(value):
    return "%g" % value if abs(value) < 1e6 else "%d" % value


def limits(key):
    """A bound that only keeps a number from overflowing is not worth a word."""
    low, high = key.get("range", (0, 0))
    if low == high == 0:
        return ""
    if abs(high) >= 1 << 16 or low == -high or (low, high) == (-8, 7):
        return ", at least %s" % number(low) if abs(low) < 1 << 16 and low not in (-8, 0) else ""
    return ", %s to %s" % (number(low), number(high))


def default(key):
    value = key.get("default")
    if key["required"]:
        return "; required"
    if value is None or value == []:
        return ""
    return "; `%s`" % ("%g" % value if isinstance(value, float) else json.dumps(value))


def key_text(key):
    words = " ".join("`%s`" % choice for choice in key["choices"]) if "choices" in key else key["kind"]
    return "`%s` (%s%s%s): %s" % (key["key"], words, limits(key), default(key), key["doc"])


def keys_text(keys):
    """The keys of initial values are the same for all layers: the manual explains them once."""
    initial = ["`%s`" % key["key"] for key in keys if key["key"] in INITIAL]
    texts = [key_text(key) for key in keys if key["key"] not in INITIAL]
    return "<br>".join(texts + (["%s: initial values" % ", ".join(initial)] if initial else []))


def pages(app):
    out = []
    for row in run(app, "list")["plugins"]:
        if row["kind"] != "layer" or row["state"] != "serving":
            continue
        plugin = run(app, "inspect", row["id"])
        out.append("\n### %s (plugin `%s`)\n" % (plugin["name"], plugin["id"]))
        out.append("| type | computes | keys (kind; default) |\n| --- | --- | --- |\n")
        for layer in plugin["layers"]:
            keys = keys_text(layer["keys"])
            cells = (layer["doc"].replace("|", "\\|"), keys.replace("|", "\\|"))
            out.append("| `%s` | %s | %s |\n" % ((layer["type"],) + cells))
    return "".join(out)


def main(arguments):
    update = arguments[0] == "--update"
    readme, app = arguments[-2:]
    with open(readme, encoding="utf-8") as stream:
        text = stream.read()
    head, mark, _ = text.partition(MARK)
    if not mark:
        sys.exit("%s: there is no line %s" % (readme, MARK))
    wanted = head + mark + pages(app)
    if update:
        with open(readme, "w", encoding="utf-8") as stream:
            stream.write(wanted)
    elif wanted != text:
        sys.stderr.writelines(difflib.unified_diff(text.splitlines(True), wanted.splitlines(True)))
        sys.exit("%s does not show the layers as they are: run apps/update_pages.sh" % readme)


if __name__ == "__main__":
    main(sys.argv[1:])
