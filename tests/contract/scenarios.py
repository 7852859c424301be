"""The scenarios that a device plugin has to pass, by number: what kubelet 1.20 to 1.37 does, and its plugins' faults.

Each has a test of this folder, or several, named `test_<number>_...`; `test_scenarios` holds list and tests together.
"""

SCENARIOS = {
    1: "Serve before register: kubelet dials back and asks for the options inside Register",
    2: "Both options: those of the registration and those of GetDevicePluginOptions are the same",
    3: "First list: it comes as soon as ListAndWatch opens, even if it is empty",
    4: "Kubelet restart, clean: all sockets are deleted and kubelet.sock is made anew",
    5: "Kubelet killed: a stale kubelet.sock refuses connections for long",
    6: "Own socket deleted only, while kubelet is up",
    7: "Stream killed only, with all sockets intact",
    8: "Spurious event: a create event for the kubelet.sock that is there already",
    9: "Race until kubelet 1.36: the end of the old stream disconnects the new plugin",
    10: "Late wipe: the directory is wiped between bind and Register",
    11: "Foreign socket safety: of two instances the older stops last",
    12: "Register refused: the name, the version, or anything else",
    13: "Hung dial: Register blocks for one resource",
    14: "Health flip: one message for each change, none without a change",
    15: "Vanished device: it stays listed, unhealthy",
    16: "Stable identity over restarts and reboots",
    17: "Topology: for all devices of a resource or for none",
    18: "Preferred: exactness",
    19: "Preferred: hostile input",
    20: "Allocate shape: an answer for each container, in order",
    21: "Allocate repeat: the same devices again, and from many callers",
    22: "Allocate deadline: a driver call hangs",
    23: "Replay: what a stored response names exists again before Register",
    24: "Size guard: a list that kubelet could not take",
    25: "Many streams at once",
    26: "PreStart: called at once for several containers",
    27: "SIGTERM, with a stream open",
    28: "Directory replaced",
    29: "Names that kubelet takes",
    30: "Response merge: two of our resources in one container",
}
