//! The fuzz targets.
