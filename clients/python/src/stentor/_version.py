"""The version of this package, which is that of the API it was generated from."""

VERSION = "0.1.0"
