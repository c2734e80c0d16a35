"""Judges a bill of materials by the schema of CycloneDX 1.6. usage: judge-bill.py FILE"""

import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(pathlib.Path(sys.argv[1]).read_text())
if error:
    sys.exit(f"{sys.argv[1]}: {error}")
