//! The five traversals of a fold against the unfolded stream.

use crate::support::{folders, odd_fold};
use loopfold::fold::borders::{Borders, GAP};
use loopfold::fold::cursor::{Cursor, Guide, Move, Step, Stretch, Visitor};
use loopfold::fold::measure::{Measured, Weight, bottom_up, holding, measure_below};
use loopfold::fold::measure::{power, power_until, rule_depths};
use loopfold::fold::rank::{Rank, nth, select};
use loopfold::fold::reach::{UseIndex, UsesBelow, below, below_marked, node_uses, top_down, top_down_rows};
use loopfold::fold::{FoldBuilder, Grammar, Item, Length, Node, Target};
use loopfold::{Fold, RuleId, Symbol};
use loopfold_testing::{Rng, streams};

/// A fold, one of its rules, and what that unfolds to.
fn sample(rng: &mut Rng) -> (Fold, RuleId, Vec<Symbol>) {
    let fold = if rng.one_in(2) {
        odd_fold(rng, 300).0
    } else {
        let symbols: Vec<Symbol> =
            streams::small(rng, 60).iter().map(|&raw| Symbol::new(raw as usize).unwrap()).collect();
        let mut builder = FoldBuilder::default();
        let folders = folders();
        let root = folders[rng.below(folders.len())].fold(&symbols, &mut builder).unwrap();
        builder.rule(&[Item::new(Target::Rule(root), 3)]).unwrap();
        builder.finish()
    };
    let rule = fold.rules().nth(rng.below(fold.rules().len())).unwrap();
    let stream = fold.unfold(rule).collect();
    (fold, rule, stream)
}

fn unfolded(fold: &Fold, target: Target) -> Vec<Symbol> {
    match target {
        Target::Symbol(symbol) => vec![symbol],
        Target::Rule(rule) => fold.unfold(rule).collect(),
    }
}

/// Checks that a stretch is what stands at its position.
fn check(fold: &Fold, stretch: &Stretch<Item>, stream: &[Symbol]) {
    let once = unfolded(fold, stretch.target);
    assert_eq!(once.len() as u64, stretch.length);
    assert!(stretch.before + stretch.times <= stretch.item.times());
    let all = once.repeat(stretch.times as usize);
    assert_eq!(stream[stretch.position as usize..stretch.end() as usize], all);
}

#[test]
fn a_cursor_meets_every_event_once_however_it_moves() {
    let mut rng = Rng::new(70);
    for _ in 0..3000 {
        let (fold, rule, stream) = sample(&mut rng);
        let mut cursor = Cursor::new(&fold, rule);
        let mut position = 0;
        while let Some(stretch) = cursor.peek() {
            assert_eq!(stretch.position, position);
            check(&fold, &stretch, &stream);
            let (inner, index) = cursor.path().next().unwrap();
            assert_eq!(fold.body(inner)[index], stretch.item);
            assert_eq!(cursor.path().last().unwrap().0, rule);
            let skipped = rng.between(0, stretch.times as usize) as u64;
            cursor.skip(skipped);
            position += skipped * stretch.length;
            if skipped < stretch.times && rng.one_in(2) {
                let entered = cursor.enter();
                assert_eq!(entered.is_some(), matches!(stretch.target, Target::Symbol(_)));
                assert!(entered.is_none_or(|event| event == position));
                position += u64::from(entered.is_some());
            }
        }
        assert_eq!(position, stream.len() as u64);
    }
}

#[test]
fn a_cursor_goes_back_to_the_beginning_from_any_position() {
    let mut rng = Rng::new(71);
    for _ in 0..3000 {
        let (fold, rule, stream) = sample(&mut rng);
        let mut position = rng.between(0, stream.len()) as u64;
        let mut cursor = Cursor::at(&fold, rule, position);
        let ahead = cursor.clone().peek();
        assert_eq!(ahead.map_or(stream.len() as u64, |stretch| stretch.position), position);
        while let Some(stretch) = cursor.peek_back() {
            assert_eq!(stretch.end(), position);
            check(&fold, &stretch, &stream);
            let skipped = rng.between(0, stretch.times as usize) as u64;
            cursor.skip_back(skipped);
            position -= skipped * stretch.length;
            if skipped < stretch.times && rng.one_in(2) {
                let entered = cursor.enter_back();
                assert!(entered.is_none_or(|event| event + 1 == position));
                position -= u64::from(entered.is_some());
            }
            // Turning around leads back to the same place.
            let ahead = cursor.clone().peek();
            assert_eq!(ahead.map_or(stream.len() as u64, |stretch| stretch.position), position);
        }
        assert_eq!(position, 0);
    }
}

#[test]
fn a_cursor_advances_by_pieces_that_end_at_each_position() {
    let mut rng = Rng::new(72);
    for _ in 0..2000 {
        let (fold, rule, stream) = sample(&mut rng);
        let mut cursor = Cursor::new(&fold, rule);
        let mut position = 0;
        while position < stream.len() as u64 {
            let next = position + rng.between(1, 20) as u64;
            let mut passed = position;
            cursor.advance_to(next, |piece| {
                assert_eq!(piece.position, passed);
                check(&fold, &piece, &stream);
                passed = piece.end();
            });
            assert_eq!(passed, next.min(stream.len() as u64));
            position = next;
        }
    }
}

#[test]
fn the_ends_of_rules_come_where_rules_end() {
    let mut rng = Rng::new(73);
    for _ in 0..1000 {
        let (fold, root, stream) = sample(&mut rng);
        let mut cursor = Cursor::new(&fold, root);
        let (mut open, mut position) = (vec![(root, 0)], 0);
        while let Some(step) = cursor.step() {
            match step {
                Step::Stretch(Stretch { target: Target::Symbol(_), times, .. }) => {
                    cursor.skip(times);
                    position += times;
                }
                Step::Stretch(Stretch { target: Target::Rule(rule), item, .. }) => {
                    let (outer, index) = cursor.path().next().unwrap();
                    assert_eq!(fold.body(outer)[index], item);
                    cursor.enter();
                    open.push((rule, position));
                }
                Step::End { rule, position: end, .. } => {
                    assert_eq!(end, position);
                    assert_eq!(open.pop(), Some((rule, end - fold.length(rule))));
                }
            }
        }
        assert!(open.is_empty());
        assert_eq!(position, stream.len() as u64);
    }
}

/// Goes anywhere, and checks that what it meets is there.
struct Wanderer<'a> {
    rng: &'a mut Rng,
    fold: &'a Fold,
    stream: &'a [Symbol],
    open: Vec<RuleId>,
    position: u64,
}

impl Visitor<Item> for Wanderer<'_> {
    type Error = ();

    fn stretch(&mut self, stretch: Stretch<Item>, (rule, index): (RuleId, usize)) -> Result<Move, ()> {
        assert_eq!(self.open.last(), Some(&rule));
        assert_eq!(self.fold.body(rule)[index], stretch.item);
        assert_eq!(stretch.position, self.position);
        check(self.fold, &stretch, self.stream);
        Ok(match (self.rng.below(8), stretch.target) {
            (0, _) => Move::Leave,
            (1..4, _) => {
                self.position = stretch.end();
                Move::Skip
            }
            (_, Target::Rule(inner)) => {
                self.open.push(inner);
                Move::Enter
            }
            (_, Target::Symbol(_)) => {
                self.position += 1;
                Move::Enter
            }
        })
    }

    fn end(&mut self, rule: RuleId, again: u64, position: u64) -> Result<Move, ()> {
        assert_eq!(self.open.pop(), Some(rule));
        assert!(position >= self.position);
        self.position = position;
        if again > 0 && self.rng.one_in(2) {
            self.open.push(rule);
            return Ok(Move::Enter);
        }
        self.position += again * self.fold.length(rule);
        Ok(Move::Skip)
    }
}

#[test]
fn a_visit_goes_where_it_is_sent() {
    let mut rng = Rng::new(80);
    for _ in 0..2000 {
        let (fold, root, stream) = sample(&mut rng);
        let mut visitor =
            Wanderer { rng: &mut rng, fold: &fold, stream: &stream, open: vec![root], position: 0 };
        assert_eq!(Cursor::new(&fold, root).visit(&mut visitor), Ok(()));
        assert!(visitor.open.is_empty());
        assert_eq!(visitor.position, stream.len() as u64);
    }
}

/// Looks for one symbol; items in which there is none are passed in groups if it is quick.
struct Counting<'a> {
    fold: &'a Fold,
    counts: &'a [u64],
    quick: bool,
}

impl Counting<'_> {
    fn of(&self, item: Item) -> u64 {
        self.counts[self.fold.item_node(item).index()]
    }
}

impl Guide<Item> for Counting<'_> {
    type Value = u64;

    fn once(&self, item: Item) -> Option<u64> {
        Some(self.of(item)).filter(|&count| count > 0)
    }

    fn pass_items(&mut self, items: &[Item], _: &mut u64) -> usize {
        let holds = |item: &Item| self.of(*item) > 0;
        if self.quick { items.iter().position(holds).unwrap_or(items.len()) } else { 0 }
    }

    fn repeated(&self, once: &u64, times: u64) -> Option<u64> {
        once.checked_mul(times)
    }

    fn count(&self, value: &u64) -> u64 {
        *value
    }

    fn pass(&mut self, _: &u64) {}
}

#[test]
fn locating_finds_every_occurrence_in_order() {
    let mut rng = Rng::new(74);
    for _ in 0..2000 {
        let (fold, rule, stream) = sample(&mut rng);
        let wanted = Symbol::new(rng.below(3)).unwrap();
        if wanted.index() >= fold.symbol_count() {
            continue;
        }
        let of_symbols = (0..fold.symbol_count()).map(|node| u64::from(node == wanted.index())).collect();
        let counts = bottom_up(&fold, of_symbols, |rule, body, counts| {
            assert_eq!(body, fold.body(rule));
            let of_item = |item: &Item| counts[fold.item_node(*item).index()] * item.times();
            Ok(body.iter().map(of_item).sum())
        })
        .unwrap();
        let mut expected = (0..).zip(&stream).filter(|(_, symbol)| **symbol == wanted).map(|(at, _)| at);
        let mut guide = Counting { fold: &fold, counts: &counts, quick: rng.one_in(2) };
        let mut cursor = Cursor::new(&fold, rule);
        loop {
            let skip = rng.below(4) as u64;
            let mut left = skip;
            let found = cursor.locate(&mut guide, &mut left).map(|(position, _)| position);
            assert_eq!(found, expected.nth(skip as usize));
            if found.is_none() {
                break;
            }
        }
    }
}

#[test]
fn ranks_count_weights_and_find_them_again() {
    let mut rng = Rng::new(75);
    for _ in 0..2000 {
        let (fold, rule, stream) = sample(&mut rng);
        let weights: Vec<u64> = (0..fold.symbol_count()).map(|_| rng.below(3) as u64).collect();
        let rank = Rank::new(&fold, |node| weights[node.index()]);
        let measured: Vec<u64> = bottom_up(&fold, weights.clone(), |_, body, known| {
            Ok(body.iter().map(|item| known[fold.item_node(*item).index()] * item.times()).sum())
        })
        .unwrap();
        let mut units = Vec::new();
        for (position, symbol) in (0..).zip(&stream) {
            assert_eq!(rank.before_position(rule, position), units.len() as u64);
            units.extend(std::iter::repeat_n(position, weights[symbol.index()] as usize));
        }
        assert_eq!(rank.weight(rule), units.len() as u64);
        assert_eq!(rank.before_position(rule, stream.len() as u64), units.len() as u64);
        for k in 0..=units.len() {
            let expected = units.get(k).copied();
            assert_eq!(rank.position(rule, k as u64), expected);
            let of_item = |item: Item| measured[fold.item_node(item).index()];
            assert_eq!(select(&fold, rule, k as u64, of_item), expected);
            let found = nth(&fold, rule, k as u64, |symbol| weights[symbol.index()]);
            assert_eq!(found, expected.ok_or(units.len() as u64));
        }
    }
}

#[test]
fn borders_are_the_ends_of_what_is_unfolded() {
    let mut rng = Rng::new(76);
    for _ in 0..1000 {
        let (fold, _, _) = sample(&mut rng);
        let width = rng.below(7);
        let borders = Borders::new(&fold, width, 1 << 20).unwrap();
        for rule in fold.rules() {
            let all: Vec<u32> = fold.unfold(rule).map(Symbol::raw).collect();
            let kept = width.min(all.len());
            let node = fold.rule_node(rule);
            assert_eq!(borders.length(node), all.len() as u64);
            assert_eq!(borders.first(node), &all[..kept]);
            let last: Vec<u32> = all.iter().rev().take(kept).copied().collect();
            assert_eq!(borders.last_reversed(node), last);
            let item = Item::new(Target::Rule(rule), rng.between(1, 4) as u64);
            let whole = all.repeat(item.times() as usize);
            let mut text = Vec::new();
            borders.push_item(item, &mut text);
            if whole.len() <= 2 * width {
                assert_eq!(text, whole);
            } else {
                let end = &whole[whole.len() - width..];
                assert_eq!(text, [&whole[..width], &[GAP], end].concat());
            }
        }
    }
    let (fold, _, _) = sample(&mut rng);
    assert!(Borders::new(&fold, 1 << 40, 1 << 20).is_err());
}

#[test]
fn reach_counts_and_lists_what_is_above_and_below() {
    let mut rng = Rng::new(77);
    for _ in 0..2000 {
        let (fold, root, stream) = sample(&mut rng);
        let uses = node_uses(&fold, std::iter::once((fold.rule_node(root), 2))).unwrap();
        for (symbol, &uses) in uses.iter().enumerate().take(fold.symbol_count()) {
            let count = stream.iter().filter(|known| known.index() == symbol).count();
            assert_eq!(uses, 2 * count as u64);
        }
        let reached: Vec<RuleId> =
            fold.rules().filter(|&rule| uses[fold.rule_node(rule).index()] > 0).collect();
        assert_eq!(below(&fold, root, |_| Ok(true)).unwrap(), reached);
        let mut marked = vec![false; fold.rules().len()];
        let is_new = |rule: RuleId| Ok(!std::mem::replace(&mut marked[rule.index()], true));
        assert_eq!(below_marked(&fold, vec![root], is_new).unwrap(), reached);
        let mut uses_below = UsesBelow::new(&fold);
        // What was counted before does not matter.
        for root in [fold.rules().nth(rng.below(fold.rules().len())).unwrap(), root] {
            uses_below.count(root).unwrap();
        }
        for rule in fold.rules() {
            assert_eq!(2 * uses_below.uses(rule), uses[fold.rule_node(rule).index()]);
        }
        // Of what is refused, nothing is listed that is not used elsewhere.
        let refused = reached[rng.below(reached.len())];
        let others = below(&fold, root, |rule| Ok(rule != refused)).unwrap();
        assert!(!others.contains(&refused));
        let other = fold.rules().nth(rng.below(fold.rules().len())).unwrap();
        let mut marked = vec![false; fold.rules().len()];
        let is_new = |rule: RuleId| Ok(!std::mem::replace(&mut marked[rule.index()], true));
        let both = below_marked(&fold, vec![root, other, root], is_new).unwrap();
        let mut expected = [reached, below(&fold, other, |_| Ok(true)).unwrap()].concat();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(both, expected);
        let index = UseIndex::new(&fold).unwrap();
        let wanted = Node::new(rng.below(fold.symbol_count().max(1)) as u32);
        if wanted.index() >= fold.symbol_count() {
            continue;
        }
        let holds = holding(&fold, |node| node == wanted);
        let mut marked = vec![false; fold.rules().len()];
        let is_new = |rule: RuleId| !std::mem::replace(&mut marked[rule.index()], true);
        let held = index.above(&fold, std::iter::once(wanted), usize::MAX, is_new).unwrap();
        let mut expected = Vec::new();
        let mut place = 0;
        for rule in fold.rules() {
            for &item in fold.body(rule) {
                if holds[fold.item_node(item).index()] {
                    assert_eq!(index.rule(place), rule);
                    expected.push(place);
                }
                place += 1;
            }
            let is_in = fold.unfold(rule).any(|symbol| symbol.index() == wanted.index());
            assert_eq!(holds[fold.rule_node(rule).index()], is_in);
            assert_eq!(marked[rule.index()], is_in);
        }
        assert_eq!(held, expected);
        if let Some(fewer) = expected.len().checked_sub(1) {
            assert!(index.above(&fold, std::iter::once(wanted), fewer, |_| true).is_none());
        }
    }
}

#[test]
fn values_pass_from_rules_to_what_they_are_made_of() {
    let mut rng = Rng::new(78);
    for _ in 0..500 {
        let (fold, root, stream) = sample(&mut rng);
        // Where each node first occurs below the root.
        let mut first = vec![u64::MAX; fold.node_count()];
        first[fold.rule_node(root).index()] = 0;
        top_down(&fold, &mut first, |_, body, &own, before| {
            let mut position = own;
            for &item in body.iter().take_while(|_| own != u64::MAX) {
                let inner = &mut before[fold.item_node(item).index()];
                *inner = position.min(*inner);
                position += fold.item_length(item);
            }
            Ok(())
        })
        .unwrap();
        for (symbol, &first) in first.iter().enumerate().take(fold.symbol_count()) {
            let expected = stream.iter().position(|known| known.index() == symbol);
            assert_eq!(first, expected.map_or(u64::MAX, |position| position as u64));
        }
    }
}

#[test]
fn rows_of_bits_pass_down_as_each_bit_alone() {
    let mut rng = Rng::new(79);
    for _ in 0..500 {
        let (fold, _, _) = sample(&mut rng);
        let width = rng.between(1, 3);
        let mut rows = vec![0u8; fold.node_count() * width];
        let roots: Vec<RuleId> =
            (0..8 * width).map(|_| fold.rules().nth(rng.below(fold.rules().len())).unwrap()).collect();
        for (bit, &root) in roots.iter().enumerate() {
            rows[fold.rule_node(root).index() * width + bit / 8] |= 1 << (bit % 8);
        }
        top_down_rows(&fold, width, &mut rows, |_, body, own, before| {
            for &item in body {
                let inner = &mut before[fold.item_node(item).index() * width..][..width];
                inner.iter_mut().zip(own).for_each(|(bits, more)| *bits |= more);
            }
            Ok(())
        })
        .unwrap();
        for (bit, &root) in roots.iter().enumerate() {
            let uses = node_uses(&fold, std::iter::once((fold.rule_node(root), 1))).unwrap();
            for (row, uses) in rows.chunks(width).zip(uses) {
                assert_eq!(row[bit / 8] >> (bit % 8) & 1 == 1, uses > 0);
            }
        }
    }
}

#[test]
fn depths_of_rules_and_values_of_items() {
    let mut rng = Rng::new(79);
    for _ in 0..500 {
        let (fold, rule, stream) = sample(&mut rng);
        let depths = rule_depths(&fold);
        for rule in fold.rules() {
            let inner = fold.body(rule).iter().map(|&item| depths[fold.item_node(item).index()]).max();
            assert_eq!(depths[fold.rule_node(rule).index()], inner.unwrap_or(0) + 1);
        }
        let weights = measure_below(&fold, &Weight(|symbol: Symbol| symbol.index() as u64), rule).unwrap();
        assert_eq!(weights[&rule], stream.iter().map(|symbol| symbol.index() as u64).sum::<u64>());
        assert_eq!(weights.len(), below(&fold, rule, |_| Ok(true)).unwrap().len());
        let lengths = Measured::new(&fold, Length).unwrap();
        assert_eq!(*lengths.of_rule(rule), stream.len() as u64);
        let item = Item::new(Target::Rule(rule), 7);
        assert_eq!(lengths.of_item(item).unwrap(), 7 * stream.len() as u64);
    }
}

#[test]
fn powers_are_what_joining_one_by_one_gives() {
    let append = |left: &mut String, right: &String| {
        left.push_str(right);
        Ok::<_, ()>(())
    };
    for times in 0..40 {
        let all = power(String::new(), "ab".to_string(), times, append).unwrap();
        assert_eq!(all, "ab".repeat(times as usize));
        // From eight letters on, the rest is made in one step.
        let settled = |square: &String, rest: u64| (square.len() >= 8).then(|| square.repeat(rest as usize));
        let all = power_until(String::new(), "ab".to_string(), times, append, settled).unwrap();
        assert_eq!(all, "ab".repeat(times as usize));
    }
}
