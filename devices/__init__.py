"""Device drivers, energy meters and actuators, one a file.

The folder lies at the top of the repository and is imported as ``legato_rt.devices``, through the
link ``legato_rt/devices``. Under its short name every back end in it would be registered twice.
"""

if __name__ != "legato_rt.devices":
    raise ImportError(
        f"this folder is the package legato_rt.devices: write `import legato_rt.devices`, "
        f"not `import {__name__}`"
    )
