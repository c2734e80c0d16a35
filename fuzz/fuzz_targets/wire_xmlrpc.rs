//! XML-RPC: parsed input can be written and parsed again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_wire::{DocumentLimits, xmlrpc};

fuzz_target!(|bytes: &[u8]| {
    let limits = DocumentLimits::default();
    let roomy = DocumentLimits { document_max_bytes: usize::MAX, nodes_max: usize::MAX, depth_max: 100, ..limits };
    // The output is nested deeper than the input where a text had no type.
    let limits = DocumentLimits { depth_max: 60, ..limits };
    if let Ok(call) = xmlrpc::read_call(bytes, &limits) {
        let again = xmlrpc::write_call(&call).expect("what was read can be written");
        assert_eq!(xmlrpc::read_call(&again, &roomy).as_ref(), Ok(&call));
        let _ = xmlrpc::calls_of_multicall(&call);
    }
    if let Ok(outcome) = xmlrpc::read_response(bytes, &limits) {
        let again = xmlrpc::write_response(&outcome).expect("what was read can be written");
        assert_eq!(xmlrpc::read_response(&again, &roomy).as_ref(), Ok(&outcome));
        if let Ok(answer) = outcome {
            let _ = xmlrpc::results_of_multicall(&answer);
        }
    }
});
