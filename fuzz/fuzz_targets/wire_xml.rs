//! XML documents: three readers agree on them, and parsed documents can be written and parsed again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_wire::{DocumentLimits, content, xml};

fuzz_target!(|bytes: &[u8]| {
    let limits = DocumentLimits::default();
    let dom = content::dom::read(bytes, &limits).ok();
    assert_eq!(content::sax::read(bytes, &limits).ok(), dom);
    assert_eq!(content::pull::read(bytes, &limits).ok(), dom);
    if let Some(content) = dom {
        let again = content.to_xml().expect("what was read can be written");
        assert_eq!(content::pull::read(&again, &limits).as_ref(), Ok(&content));
    }
    let Ok(tree) = xml::dom::parse(bytes, &limits) else { return };
    // The writer refuses names that we never write.
    let Ok(again) = tree.to_bytes() else { return };
    let roomy = DocumentLimits { document_max_bytes: usize::MAX, attributes_max: usize::MAX, ..limits };
    assert_eq!(xml::dom::parse(&again, &roomy), Ok(tree));
});
