"""plugins/abi.md: the boundary's tables, structs and constants, as core/abi/netcl_plugin.h has them.

Usage: abi_page.py [--update] PAGE HEADER     without --update: fails if the page is another
"""

import difflib
import re
import sys

HEAD = """# The boundary, from its header
Made from [netcl_plugin.h](../core/abi/netcl_plugin.h) by `plugins/update_pages.sh`; the header has the exact declarations. [README](README.md) is the guide, [CHANGELOG](../core/abi/CHANGELOG.md) says what came when. C++ authors meet these things through [netcl_plugin.hpp](../core/abi/netcl_plugin.hpp) and the headers beside it.

Threads: `setup` one thread, before first use; `any` any thread, at the same time; `queue` one call at a time for one queue; `group` one call at a time for one group.
"""
SECTION = re.compile(r"/\* -{4} (.*?) -{2,}")
FUNCTION = re.compile(r"\(\*(\w+)\)\((.*)\)$", re.S)
TAG = re.compile(r"\[(setup|any|queue|group)(?::[^\]]*)?\]")
SINCE = re.compile(r"Since (\d+\.\d+)[.:]?")


def comment_text(text):
    text = re.sub(r"^/\*+|\*/$", "", text.strip())
    return " ".join(re.sub(r"^\s*\*\s?", "", line).strip() for line in text.splitlines()).strip()


def statements(body, end):
    """(comment, code) pairs of a struct (end ";") or an enum (","): the comment before or behind."""
    before, code, depth, found = "", "", 0, []
    for piece in re.findall(r"/\*.*?\*/|.", body, re.S):
        if piece.startswith("/*"):
            if code.strip():  # within a member: behind its comma or name
                code += " "
                before = comment_text(piece)
            elif found and "\n" not in gap:  # behind the member before, on its line
                found[-1] = (comment_text(piece), found[-1][1])
            else:
                before = comment_text(piece)
            continue
        depth += piece in "({"
        depth -= piece in ")}"
        if piece == end and depth == 0:
            found.append((before, " ".join(code.split())))
            code, gap = "", ""
            if "(*" not in found[-1][1]:
                before = ""  # functions may share one comment
            continue
        if not code.strip() and piece.isspace():
            gap = (gap if found else "") + piece
            continue
        code += piece
    if code.strip():
        found.append((before, " ".join(code.split())))
    return found


def cell(text):
    return text.replace("|", "\\|")


def described(comment):
    tag = TAG.search(comment)
    since = SINCE.search(comment)
    words = " ".join(SINCE.sub("", TAG.sub("", comment)).split()).replace(" ,", ",").replace(" .", ".").replace(" ;", ";")
    return tag.group(1) if tag else "", since.group(1) if since else "", cell(words)


def struct_lines(name, body, comment):
    yield "\n### `%s`" % name
    if comment:
        yield comment
    rows = []
    for words, code in statements(body, ";"):
        function = FUNCTION.search(code)
        tag, since, text = described(words)
        if function:
            arguments = ", ".join(part.strip() for part in function.group(2).split(","))
            rows.append("| `%s(%s)` | %s | %s | %s |" % (function.group(1), cell(arguments), tag, text, since))
        else:
            rows.append("| `%s` | %s | %s | %s |" % (cell(code), tag, text, since))
    yield "\n| member | thread | what | since |\n| --- | --- | --- | --- |"
    yield from rows


def enum_lines(body, comment):
    if comment:
        yield "\n" + comment
    rows = []
    for words, code in statements(body, ","):
        rows.append("| `%s` | %s |" % (code, cell(words)))
    yield "\n| constant | what |\n| --- | --- |"
    yield from rows


def page(header):
    text = header[header.index('extern "C" {\n#endif') :]
    text = text[: text.index("#ifdef __cplusplus\n} /*")]
    pattern = re.compile(
        r"(?P<section>/\* -{4} .*?\*/)"
        r"|(?P<comment>/\*.*?\*/)"
        r"|typedef struct (?P<struct>\w+) \{(?P<members>.*?)\n\} \w+;"
        r"|(?:typedef )?enum(?: \w+)? \{(?P<values>.*?)\}(?: \w+)?;"
        r"|(?P<other>[^\n]*\n)", re.S)
    out, comment = [HEAD + "\n## Basics"], ""
    for match in pattern.finditer(text):
        if match.group("section"):
            title = SECTION.search(match.group("section")).group(1)
            out.append("\n## " + title[0].upper() + title[1:].replace('"', "`"))
        elif match.group("comment"):
            comment = comment_text(match.group("comment"))
            continue
        elif match.group("struct"):
            out += struct_lines(match.group("struct"), match.group("members"), comment)
        elif match.group("values"):
            out += enum_lines(match.group("values"), comment)
        elif match.group("other").strip() == "":
            continue
        comment = ""
    return "\n".join(out) + "\n"


def main(arguments):
    update = arguments[:1] == ["--update"]
    path, header = arguments[1:] if update else arguments
    with open(header, encoding="utf-8") as file:
        wanted = page(file.read())
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(wanted)
        return
    with open(path, encoding="utf-8") as file:
        found = file.read()
    if found != wanted:
        sys.stderr.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), "page", "header"))
        sys.exit("%s does not show the header as it is: run plugins/update_pages.sh" % path)


if __name__ == "__main__":
    main(sys.argv[1:])
