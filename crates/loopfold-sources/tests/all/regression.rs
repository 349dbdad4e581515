//! A test for each bug that was found, named after it.

use loopfold::trace::Collector;
use loopfold_sources::{Context, Options, by_name};

/// `--category kernel` selected such a slice, but it stayed in the stream of its thread.
#[test]
fn a_kernel_with_several_categories_is_work_of_the_gpu_queue() {
    let text = br#"[
        {"ph":"X","cat":"gpu_user_annotation","name":"step","pid":0,"tid":7,"ts":1,"dur":9},
        {"ph":"X","cat":"foo, kernel","name":"gemm","pid":0,"tid":7,"ts":2,"dur":3},
        {"ph":"X","cat":"gpu_memset,foo","name":"Memset","pid":0,"tid":7,"ts":5,"dur":1}]"#;
    let (options, mut collector) = (Options::default(), Collector::default());
    let mut context = Context::new(&options, &mut collector, "input", false);
    by_name("chrome").unwrap().read(&mut &text[..], &mut context).unwrap();
    let trace = collector.finish().unwrap();
    let lengths = trace.streams.iter().map(|stream| (stream.name.as_str(), stream.symbols.len()));
    assert_eq!(lengths.collect::<Vec<_>>(), [("pid 0 tid 7", 1), ("pid 0 tid 7 gpu queue", 2)]);
}
