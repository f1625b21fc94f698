"""Operations with all their variants, one a file.

The folder lies at the top of the repository and is imported as ``legato_rt.kernels``, through the
link ``legato_rt/kernels``. Under its short name every task in it would be registered twice.
"""

if __name__ != "legato_rt.kernels":
    raise ImportError(
        f"this folder is the package legato_rt.kernels: write `import legato_rt.kernels`, "
        f"not `import {__name__}`"
    )
