//! Circles among imports.

use super::imports::Imports;
use super::source::Name;
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use std::collections::{BTreeMap, BTreeSet};

/// The groups of modules in several rooms that need each other, each with the imports in it, a line for each module.
pub fn across_rooms(imports: &Imports) -> Vec<String> {
    let mut graph = DiGraph::<&Name, ()>::new();
    let nodes: BTreeMap<&Name, _> =
        imports.keys().map(|name| (name, graph.add_node(name))).collect();
    for (name, others) in imports {
        for other in others {
            graph.add_edge(nodes[name], nodes[other], ());
        }
    }
    let groups = tarjan_scc(&graph)
        .into_iter()
        .map(|group| -> BTreeSet<&Name> { group.into_iter().map(|node| graph[node]).collect() });
    let rooms = |group: &BTreeSet<&Name>| -> usize {
        group.iter().filter_map(|name| name.first()).collect::<BTreeSet<_>>().len()
    };
    groups.filter(|group| rooms(group) > 1).map(|group| said(imports, &group)).collect()
}

fn said(imports: &Imports, group: &BTreeSet<&Name>) -> String {
    let line = |name: &&Name| {
        let others = imports[*name].iter().filter(|other| group.contains(other));
        let others: Vec<String> = others.map(|other| other.join("::")).collect();
        format!("  {} -> {}\n", name.join("::"), others.join(", "))
    };
    group.iter().map(line).collect()
}
