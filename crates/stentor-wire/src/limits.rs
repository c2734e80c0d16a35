//! Limits of foreign documents.

use crate::WireError;

/// Limits of one document or frame. A document that exceeds one is refused, never cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Largest document, in bytes.
    pub document_max_bytes: usize,
    /// Deepest nesting of elements or values; 100 at most, so that no stack overflows.
    pub depth_max: usize,
    /// Most elements or values.
    pub nodes_max: usize,
    /// Most attributes of one element.
    pub attributes_max: usize,
}

/// Deepest nesting of all readers, even if a limit allows more.
const DEPTH_CEILING: usize = 100;

impl Default for DocumentLimits {
    /// 16 MiB, 64 deep, a million nodes, 32 attributes.
    fn default() -> Self {
        Self { document_max_bytes: 16 << 20, depth_max: 64, nodes_max: 1_000_000, attributes_max: 32 }
    }
}

impl DocumentLimits {
    /// Refuses a document that is too large.
    pub(crate) const fn check_size(&self, bytes: usize) -> Result<(), WireError> {
        if bytes > self.document_max_bytes {
            return Err(WireError::TooLarge { max_bytes: self.document_max_bytes });
        }
        Ok(())
    }

    /// Starts counting depth and nodes.
    pub(crate) const fn budget(&self) -> Budget {
        Budget { limits: *self, depth: 0, nodes: 0 }
    }
}

/// Depth and nodes so far.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    limits: DocumentLimits,
    depth: usize,
    nodes: usize,
}

impl Budget {
    /// Enters a node.
    pub(crate) fn enter(&mut self) -> Result<(), WireError> {
        let depth_max = self.limits.depth_max.min(DEPTH_CEILING);
        self.depth += 1;
        self.nodes += 1;
        if self.depth > depth_max {
            return Err(WireError::TooDeep { max: depth_max });
        }
        if self.nodes > self.limits.nodes_max {
            return Err(WireError::TooMany { what: "nodes", max: self.limits.nodes_max });
        }
        Ok(())
    }

    /// Leaves a node.
    pub(crate) const fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }
}
