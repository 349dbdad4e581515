//! How much can still come: for the occurrences of a subpath, a bound on the cost of
//! what follows them within the greatest length.
//!
//! Where events differ in what they cost, one rare and very dear event would make every
//! subpath look as if it could become hot. So for every item it is known what the next
//! events after it cost: the rest of its rule, and if that is not long enough, what
//! follows the rule, averaged over its uses, since in the end the costs of all
//! occurrences are added up anyway. What lies a little beyond the greatest length may be
//! counted in; nothing within it is left out.
//!
//! Averages are floating-point numbers that are only added and multiplied, and rounded
//! up in the end. Cost: two passes over the rules, each with a look at as many items as
//! the greatest length at the most; 8 bytes an item and each class of followers.

use super::followers::{Followers, Part, Place};
use crate::RuleId;
use crate::fold::Item;

/// More than all that rounding can take away from a sum.
const SLACK: f64 = 1.0 + 1e-6;

/// What can come after the items of a fold.
pub(super) struct Ahead<'a> {
    followers: &'a Followers<'a>,
    longest: u64,
    limit: f64,
    /// What the first events of each part cost, as many as may matter.
    heads: Vec<u128>,
    /// For each item, what the next events after it cost when its rule is unfolded once.
    after: Vec<f64>,
    /// For each class of followers, what its events and those after them cost.
    classes: Vec<f64>,
}

impl<'a> Ahead<'a> {
    /// For subpaths of at most `longest` events that are hot from `limit` on; `costs`
    /// says what each event costs. Nothing where all cost the same: there the number of
    /// events says it all.
    pub(super) fn new(
        followers: &'a Followers<'a>,
        costs: &[u64],
        longest: usize,
        limit: u128,
    ) -> Option<Self> {
        if costs.windows(2).all(|pair| pair[0] == pair[1]) {
            return None;
        }
        let mut ahead = Self {
            followers,
            longest: longest as u64,
            limit: limit as f64 / SLACK,
            heads: costs.iter().map(|&cost| cost.into()).collect(),
            after: vec![0.0; followers.fold.items()],
            classes: Vec::new(),
        };
        for rule in followers.fold.rules() {
            let head = ahead.head_of(rule);
            ahead.heads.push(head);
        }
        ahead.find_after();
        for class in followers.all_classes() {
            let places = followers.places(class);
            let sum = places.map(|(place, part, count)| ahead.of_place(place, part, count)).sum();
            ahead.classes.push(sum);
        }
        Some(ahead)
    }

    /// Whether a subpath that occurs `count` times and whose events cost `cost` can
    /// become hot with what is ahead of its occurrences.
    pub(super) fn suffices(&self, count: u64, cost: u128, ahead: f64) -> bool {
        count as f64 * cost as f64 + ahead >= self.limit
    }

    /// What a class of followers costs with all that comes after it.
    pub(super) fn of_class(&self, class: u32) -> f64 {
        self.classes[class as usize]
    }

    /// What the part at a place costs with all that comes after it, for the occurrences
    /// that have come to its first event.
    pub(super) fn of_place(&self, place: Place, part: Part, count: u64) -> f64 {
        let (occurrences, repeats) = self.followers.left(place);
        let again = occurrences as f64 * self.of_repeats(part, repeats) as f64;
        let leaving = occurrences.min(self.in_reach(part)) as f64 * self.after[place.item()];
        count as f64 * self.heads[part as usize] as f64 + place.uses() as f64 * (again + leaving)
    }

    /// What the first events of a rule cost, all of whose parts are known.
    fn head_of(&self, rule: RuleId) -> u128 {
        let fold = self.followers.fold;
        let (mut cost, mut room) = (0, self.longest);
        let mut rest = fold.body(rule).iter();
        while let Some(item) = rest.next()
            && room > 0
        {
            let length = fold.target_length(item.target());
            let whole = item.times().min(room.checked_div(length).unwrap_or(0));
            let part = self.followers.part(item.target());
            cost += u128::from(whole) * self.heads[part as usize];
            room -= whole * length;
            if whole < item.times()
                && let Some(inner) = self.followers.rule(part)
            {
                // The room ends inside this rule.
                rest = fold.body(inner).iter();
            }
        }
        cost
    }

    /// What the first events of a part that repeats cost.
    fn of_repeats(&self, part: Part, times: u64) -> u128 {
        self.heads[part as usize] * u128::from(times.min(self.in_reach(part)))
    }

    /// How many repetitions of a part begin within the greatest length.
    fn in_reach(&self, part: Part) -> u64 {
        self.longest.div_ceil(u64::from(self.followers.length(part)).max(1))
    }

    /// From the roots down: what follows a rule is known when all its uses are.
    fn find_after(&mut self) {
        let fold = self.followers.fold;
        let mut follow = vec![0.0; fold.rules().len()];
        for rule in fold.rules().rev() {
            let uses = self.followers.uses(rule);
            if uses == 0 {
                continue;
            }
            self.find_after_items(rule, follow[rule.index()] / uses as f64);
            for (at, item) in fold.item_range(rule).zip(fold.body(rule)) {
                let part = self.followers.part(item.target());
                if let Some(inner) = self.followers.rule(part) {
                    let again = item.times() as f64 * self.of_repeats(part, item.times() - 1) as f64;
                    let leaving = item.times().min(self.in_reach(part)) as f64 * self.after[at];
                    follow[inner.index()] += uses as f64 * (again + leaving);
                }
            }
        }
    }

    /// What comes after each item of a rule: the items that begin less than the greatest
    /// length behind it, and if the rule ends before that, what comes after the rule.
    fn find_after_items(&mut self, rule: RuleId, outside: f64) {
        let fold = self.followers.fold;
        let (body, ends) = (fold.body(rule), fold.item_ends(rule));
        let start = fold.item_range(rule).start;
        let (mut near, mut near_end) = (0, body.len());
        for at in (0..body.len()).rev() {
            while near_end > at + 1 && ends[near_end - 2] - ends[at] >= self.longest {
                near_end -= 1;
                near -= self.of_item(body[near_end]);
            }
            let leaves = fold.length(rule) - ends[at] < self.longest;
            self.after[start + at] = near as f64 + if leaves { outside } else { 0.0 };
            near += self.of_item(body[at]);
        }
    }

    fn of_item(&self, item: Item) -> u128 {
        self.of_repeats(self.followers.part(item.target()), item.times())
    }
}
