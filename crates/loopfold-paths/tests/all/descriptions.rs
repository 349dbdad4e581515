//! Descriptions as bytes: what is encoded is decoded, and damage is an error or another description.

use loopfold_paths::{Block, Cuts, Ending, Function, Graph, Kind, Module, Numbering};
use loopfold_testing::Rng;
use loopfold_testing::graphs;

fn random_function(rng: &mut Rng, number: usize) -> Function {
    let graph = Graph::new(&graphs::random(rng, 15)).unwrap();
    let kind = if rng.one_in(3) { Kind::Blocks } else { Kind::Paths };
    let endings: Vec<Ending> =
        (0..graph.len()).map(|_| if rng.one_in(4) { Ending::Call } else { Ending::Open }).collect();
    let cuts = match kind {
        Kind::Paths => Cuts::choose(&graph, &endings, 1 + rng.below(100) as u64),
        Kind::Blocks => Cuts::everywhere(&graph),
    };
    let line = rng.below(3000) as u32;
    let block = |rng: &mut Rng| {
        let first_line = if rng.one_in(5) { 0 } else { line + rng.below(200) as u32 };
        Block { first_line, last_line: first_line + rng.below(9) as u32, instructions: rng.below(300) as u32 }
    };
    let blocks = (0..graph.len()).map(|_| block(rng)).collect();
    let file = ["", "a.c", "src/ünïcode.rs"][rng.below(3)];
    let numbering = Numbering::new(graph, cuts).unwrap();
    Function::new(format!("f{number}"), file.into(), line, kind, blocks, numbering).unwrap()
}

fn random_module(rng: &mut Rng) -> Module {
    let functions = (0..rng.below(8)).map(|number| random_function(rng, number)).collect();
    Module::new("dir/module.c".to_string(), functions)
}

#[test]
fn what_is_encoded_is_decoded() {
    let mut rng = Rng::new(21);
    for _ in 0..500 {
        let module = random_module(&mut rng);
        assert_eq!(Module::decode(&module.encode()).unwrap(), module);
    }
}

#[test]
fn every_prefix_is_an_error() {
    let mut rng = Rng::new(22);
    for _ in 0..40 {
        let bytes = random_module(&mut rng).encode();
        assert!((0..bytes.len()).all(|length| Module::decode(&bytes[..length]).is_err()));
        assert!(Module::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
}

#[test]
fn damage_never_panics() {
    let mut rng = Rng::new(23);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..300 {
        let bytes = random_module(&mut rng).encode();
        for _ in 0..100 {
            let mut damaged = bytes.clone();
            for _ in 0..rng.between(1, 3) {
                let at = rng.below(damaged.len());
                damaged[at] = rng.next_u64() as u8;
            }
            let Ok(module) = Module::decode(&damaged) else {
                refused += 1;
                continue;
            };
            read += 1;
            for function in module.functions() {
                for number in [0, 1, function.paths().saturating_sub(1), function.paths(), u64::MAX] {
                    let path = function.blocks(number);
                    assert_eq!(path.is_some(), number < function.paths());
                    assert_eq!(function.instructions(number).is_some(), path.is_some());
                }
            }
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} read, {refused} refused");
}

#[test]
fn claimed_numbers_cost_no_memory() {
    let header = Module::default().encode();
    for claimed in [[0xff, 0xff, 0xff, 0xff, 0x0f].as_slice(), &[0xff; 9], &[0xff, 0xff, 0x7f]] {
        let bytes = [&header[..header.len() - 1], claimed, &[1]].concat();
        assert!(Module::decode(&bytes).is_err());
    }
}

#[test]
fn instructions_add_up() {
    let graph = Graph::new(&[vec![1, 2], vec![2], vec![]]).unwrap();
    let cuts = Cuts::choose(&graph, &[], 100);
    let block = |instructions| Block { instructions, ..Block::default() };
    let numbering = Numbering::new(graph, cuts).unwrap();
    let blocks = vec![block(3), block(5), block(7)];
    let function = Function::new("f".into(), "".into(), 0, Kind::Paths, blocks, numbering).unwrap();
    let costs: Vec<Option<u64>> = (0..3).map(|number| function.instructions(number)).collect();
    assert_eq!(costs, [Some(15), Some(10), None]);
}
