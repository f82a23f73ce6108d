"""The footings to be had here, and a mark for tests that need a sandbox."""

import os

import pytest

from executor.sandbox.probe import BUBBLEWRAP, probe, trouble_with
from executor.sandbox.walls import Footing

FOOTINGS = [footing for footing in Footing if not trouble_with(BUBBLEWRAP, footing)]
"""Those on which a sandbox can be built here."""

PREFIXES = {
    Footing.OWN_UID: (),
    # Root without CAP_SYS_ADMIN, as in a container: namespaces are to be had in a user namespace only.
    Footing.USER_NAMESPACE: ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    if os.geteuid() == 0
    else (),
}
"""What a command line begins with so that its sandboxes stand on this footing."""

needs_sandbox = pytest.mark.skipif(probe().footing is None, reason=probe().trouble or "there is a sandbox")
