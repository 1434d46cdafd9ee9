"""netcl_dist(): an archive to unpack and run, laid out as an installation."""

load("//plugins:defs.bzl", "NetclPluginsDirInfo")

def _dist_impl(ctx):
    places = []
    for target, folder in ctx.attr.files.items():
        root = target.label.package + "/"
        for file in target.files.to_list():
            # A file keeps its path below the package that names it.
            path = file.short_path
            path = path[len(root):] if path.startswith(root) else file.basename
            if path.endswith(".stripped"):  # Bazel's name for a program without symbols
                path = path[:-len(".stripped")]
            places.append((folder + "/" + path, file))
    for path, file in ctx.attr.plugins[NetclPluginsDirInfo].files:
        places.append(("plugins/" + path, file))

    arguments = ctx.actions.args()
    arguments.add(ctx.file._pack)
    arguments.add(ctx.outputs.out)
    for path, file in places:
        arguments.add(file, format = path + "=%s")
    ctx.actions.run(
        executable = "python3",
        arguments = [arguments],
        inputs = [file for _, file in places] + [ctx.file._pack],
        outputs = [ctx.outputs.out],
        mnemonic = "NetclDist",
        use_default_shell_env = True,
    )
    return [DefaultInfo(
        files = depset([ctx.outputs.out]),
        runfiles = ctx.runfiles(files = [ctx.outputs.out]),
    )]

netcl_dist = rule(
    implementation = _dist_impl,
    doc = "Packs files and plugins into a reproducible .tar.gz without a leading directory.",
    attrs = {
        "files": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "Target -> folder in the archive; paths below the target's package are kept.",
        ),
        "out": attr.output(mandatory = True),
        "plugins": attr.label(
            mandatory = True,
            providers = [NetclPluginsDirInfo],
            doc = "A plugins_dir(); it becomes plugins/.",
        ),
        "_pack": attr.label(
            allow_single_file = True,
            default = "//apps/dist:pack.py",
        ),
    },
)
