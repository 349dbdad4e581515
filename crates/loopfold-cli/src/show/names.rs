//! Shortens the names of events so that different ones look different.
//!
//! Names of C++ are long because of what the reader needs least: the type that is returned, the
//! arguments, the namespaces, the arguments of templates. These are left out in this order, as
//! far as needed; then what is in the middle is replaced by `…`. Other names, such as calls with
//! their arguments, are only shortened in the middle; a path of a function is `PATH in FUNCTION`.
//!
//! In a table, names that would look equal are shortened less cleverly, so that what distinguishes
//! them remains, and are numbered if nothing helps. Cost: O(length) a name and step.

use super::labels::shorten;
use std::collections::{HashMap, HashSet};

/// A name of at most `width` characters.
pub(crate) fn shorten_name(name: &str, width: usize) -> String {
    let width = width.max(8);
    let simpler = forms(name).into_iter().find(|form| form.chars().count() <= width);
    simpler.unwrap_or_else(|| shorten(forms(name).last().map_or(name, String::as_str), width))
}

/// All names of at most `width` characters, in order: equal ones if and only if the names are
/// equal.
pub(crate) fn shorten_names(names: &[String], width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut short: HashMap<&str, String> = HashMap::new();
    let mut used: HashSet<String> = HashSet::new();
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for name in names.iter().map(String::as_str).filter(|name| seen.insert(name)) {
        let form = shorten_name(name, width);
        let at = *places.entry(form.clone()).or_insert(groups.len());
        if at == groups.len() {
            groups.push((form.clone(), Vec::new()));
        }
        groups[at].1.push(name);
    }
    // Names that look like no other keep their form.
    for (form, group) in groups.iter().filter(|(_, group)| group.len() == 1) {
        short.insert(group[0], form.clone());
        used.insert(form.clone());
    }
    for (form, group) in groups.iter().filter(|(_, group)| group.len() > 1) {
        let chosen = distinct(group, width, &used).unwrap_or_else(|| numbered(form, group, width, &used));
        for (name, form) in group.iter().zip(chosen) {
            used.insert(form.clone());
            short.insert(name, form);
        }
    }
    names.iter().map(|name| short.get(name.as_str()).cloned().unwrap_or_default()).collect()
}

/// Forms of some names that differ from each other and from others, of as little detail as
/// possible.
fn distinct(group: &[&str], width: usize, used: &HashSet<String>) -> Option<Vec<String>> {
    let forms: Vec<Vec<String>> = group.iter().map(|name| forms(name)).collect();
    let most = forms.iter().map(Vec::len).max().unwrap_or(0);
    let differ = |chosen: &Vec<String>| {
        let all: HashSet<&String> = chosen.iter().collect();
        all.len() == chosen.len() && chosen.iter().all(|form| !used.contains(form))
    };
    let of_step = |step: usize| -> Vec<String> {
        let form = |forms: &Vec<String>| shorten(&forms[step.min(forms.len() - 1)], width);
        forms.iter().map(form).collect()
    };
    let of_difference = |step: usize| -> Vec<String> {
        let texts: Vec<&str> = forms.iter().map(|forms| forms[step.min(forms.len() - 1)].as_str()).collect();
        around_difference(&texts, width)
    };
    (0..most).rev().map(of_step).find(differ).or_else(|| (0..most).rev().map(of_difference).find(differ))
}

/// Each text from where they begin to differ, behind as much of its beginning as fits.
fn around_difference(texts: &[&str], width: usize) -> Vec<String> {
    let texts: Vec<Vec<char>> = texts.iter().map(|text| text.chars().collect()).collect();
    let Some(first) = texts.first() else { return Vec::new() };
    let is_common = |at: &usize| texts.iter().all(|text| text.get(*at) == first.get(*at));
    let common = (0..first.len()).take_while(is_common).count();
    let around = |text: &Vec<char>| {
        let half = (width - 2) / 2;
        let rest: Vec<char> = text.iter().copied().skip(common).collect();
        let head = text.iter().take(half.min(common));
        let tail = shorten(&rest.iter().collect::<String>(), (width - half - 1).max(8));
        head.chain(&['…']).copied().chain(tail.chars()).take(width).collect()
    };
    texts.iter().map(around).collect()
}

/// The same form with a number for each name.
fn numbered(form: &str, group: &[&str], width: usize, used: &HashSet<String>) -> Vec<String> {
    let mut number = 0;
    let mut next = || loop {
        number += 1;
        let suffix = format!(" #{number}");
        let room = width.saturating_sub(suffix.len());
        let form: String = form.chars().take(room).chain(suffix.chars()).collect();
        if !used.contains(&form) {
            return form;
        }
    };
    group.iter().map(|_| next()).collect()
}

/// A name with less and less detail, itself first.
fn forms(name: &str) -> Vec<String> {
    let mut forms = vec![name.to_string()];
    // Of a path, where it is and whose it is matters.
    if let Some((path, function)) = name.split_once(" function=") {
        forms.extend(self::forms(function).into_iter().map(|function| format!("{path} in {function}")));
        return forms;
    }
    if !is_cpp(name) {
        return forms;
    }
    for step in [without_return_type, without_arguments, without_namespaces, without_template_arguments] {
        if let Some(simpler) = forms.last().map(|form| step(form)).filter(|form| !form.trim().is_empty()) {
            forms.push(simpler);
        }
    }
    forms
}

fn is_cpp(name: &str) -> bool {
    name.contains("::") || name.starts_with("void ") || name.contains('<') && name.ends_with(['>', ')'])
}

fn without_return_type(name: &str) -> String {
    name.strip_prefix("void ").unwrap_or(name).to_string()
}

/// Without the last pair of parentheses and what follows, if the name ends with it.
fn without_arguments(name: &str) -> String {
    let trimmed = name.trim_end_matches(" const");
    if !trimmed.ends_with(')') {
        return name.to_string();
    }
    let mut depth = 0;
    for (at, character) in trimmed.char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            // `(anonymous namespace)::f` begins with parentheses, too.
            return if at > 0 { trimmed[..at].to_string() } else { name.to_string() };
        }
    }
    name.to_string()
}

/// Without what comes before `::`, everywhere.
fn without_namespaces(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    let mut rest = name.replace("(anonymous namespace)::", "");
    while let Some(at) = rest.find("::") {
        let is_part = |character: char| character.is_alphanumeric() || character == '_' || character == '~';
        let before = &rest[..at];
        kept.push_str(before.trim_end_matches(is_part));
        // Behind template arguments: `f<x>::g`.
        if before.ends_with('>') {
            kept.push_str("::");
        }
        rest = rest[at + 2..].to_string();
    }
    kept + &rest
}

/// With `<…>` for the arguments of templates.
fn without_template_arguments(name: &str) -> String {
    if name.contains("operator<") || name.contains("operator>") || name.contains("->") {
        return name.to_string();
    }
    let mut kept = String::with_capacity(name.len());
    let mut depth = 0usize;
    for character in name.chars() {
        match character {
            '<' => {
                if depth == 0 {
                    kept.push_str("<…>");
                }
                depth += 1;
            }
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(character),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpp_lose_what_matters_least() {
        let name = "void at::native::vectorized_elementwise_kernel<4, at::native::Add<float>>(int, float*)";
        let short = |width| shorten_name(name, width);
        assert_eq!(short(200), name);
        assert_eq!(short(81), &name[5..]);
        assert_eq!(short(69), "at::native::vectorized_elementwise_kernel<4, at::native::Add<float>>");
        assert_eq!(short(50), "vectorized_elementwise_kernel<4, Add<float>>");
        assert_eq!(short(40), "vectorized_elementwise_kernel<…>");
        assert_eq!(short(20), "vectorized_e…rnel<…>");
        assert_eq!(shorten_name("(anonymous namespace)::kernel(int)", 10), "kernel");
        // Arguments of other calls are what distinguishes them.
        assert_eq!(shorten_name("openat(AT_FDCWD, \"/etc/passwd\")", 20), "openat(AT_FD…asswd\")");
    }

    /// Names with equal beginnings and ends, and names that look like shortened ones.
    #[test]
    fn different_names_of_a_table_look_different() {
        let mut names: Vec<String> = Vec::new();
        for kind in ["float", "double", "long double const volatile"] {
            for size in 0..12 {
                names.push(format!("void a::b::kernel<a::Tile<{size}, {kind}>, 7>(a::Params, {kind}*, int)"));
                names.push(format!("kernel_of_a_rather_long_name_{size}_with_the_same_end"));
                names.push(format!("kernel<…> #{size}"));
            }
        }
        names.extend(["x".repeat(300), "x".repeat(301), "x".repeat(302)]);
        names.push("kernel<…>".to_string());
        for width in [8, 12, 20, 28, 52, 79] {
            let short = shorten_names(&names, width);
            assert!(short.iter().all(|form| form.chars().count() <= width), "{short:#?}");
            for (one, first) in names.iter().zip(&short) {
                for (other, second) in names.iter().zip(&short) {
                    assert_eq!(one == other, first == second, "{one} {other}: {first} {second}");
                }
            }
        }
    }

    #[test]
    fn what_distinguishes_names_is_kept() {
        let names =
            ["Tile128", "Tile64"].map(|tile| format!("void gemm_kernel<{tile}, float>(Params<{tile}>)"));
        assert_eq!(shorten_names(&names, 24), ["gemm_kernel<Ti…8, float>", "gemm_kernel<Ti…4, float>"]);
    }
}
