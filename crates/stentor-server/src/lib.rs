//! The product: faces, services, pipeline.
