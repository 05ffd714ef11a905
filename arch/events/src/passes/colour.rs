//! Edge colouring of a bipartite multigraph with as many colours as its largest degree (König).
//!
//! A unit is one side, a thing that can be in one place a pass (an MSR, a correlate) the other, a
//! request an edge between them, and a pass a colour: edges that meet have different colours. So a
//! load of at most k on every unit and every MSR can always be spread over k passes.

use alloc::vec;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// An edge; `left` is `None` for requests that meet others on their unit only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub left: Option<usize>,
    pub right: usize,
}

/// Colours all edges, or `None` if some node has more edges than there are colours.
pub(super) fn colour(
    edges: &[Edge],
    lefts: usize,
    rights: usize,
    colours: usize,
) -> Option<Vec<usize>> {
    let mut table = Table {
        colours,
        at: vec![NONE; (lefts + rights) * colours],
        edges,
        lefts,
        colour_of: vec![0; edges.len()],
    };
    for (index, edge) in edges.iter().enumerate() {
        let right = lefts + edge.right;
        let mut colour = table.free(right)?;
        if let Some(left) = edge.left {
            let left_free = table.free(left)?;
            table.swap_path(right, left_free, colour);
            colour = left_free;
        }
        table.set(index, colour);
    }
    Some(table.colour_of)
}

struct Table<'e> {
    colours: usize,
    /// For each node and colour, the edge with that colour there.
    at: Vec<u32>,
    edges: &'e [Edge],
    lefts: usize,
    colour_of: Vec<usize>,
}

impl Table<'_> {
    fn row(&self, node: usize) -> &[u32] {
        &self.at[node * self.colours..(node + 1) * self.colours]
    }

    fn free(&self, node: usize) -> Option<usize> {
        self.row(node).iter().position(|edge| *edge == NONE)
    }

    fn ends(&self, edge: usize) -> [Option<usize>; 2] {
        [self.edges[edge].left, Some(self.lefts + self.edges[edge].right)]
    }

    fn set(&mut self, edge: usize, colour: usize) {
        self.colour_of[edge] = colour;
        for node in self.ends(edge).into_iter().flatten() {
            self.at[node * self.colours + colour] = edge as u32;
        }
    }

    /// Frees `first` at a node by exchanging two colours along the path that starts there with
    /// `first`: no path if it is free already. `second` is free at the node, so the path does not come back.
    fn swap_path(&mut self, node: usize, first: usize, second: usize) {
        let mut path = Vec::new();
        let (mut at, mut colour) = (node, first);
        loop {
            let edge = self.at[at * self.colours + colour];
            if edge == NONE {
                break;
            }
            path.push(edge as usize);
            let other = self.ends(edge as usize).into_iter().flatten().find(|end| *end != at);
            let Some(other) = other else { break };
            at = other;
            colour = first + second - colour;
        }
        for edge in &path {
            for end in self.ends(*edge).into_iter().flatten() {
                self.at[end * self.colours + self.colour_of[*edge]] = NONE;
            }
        }
        for edge in path {
            self.set(edge, first + second - self.colour_of[edge]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn n2_colours_suffice_whenever_no_node_has_more_edges(
            ends in prop::collection::vec((prop::option::of(0_usize..4), 0_usize..6), 0..60)
        ) {
            let edges: Vec<Edge> =
                ends.into_iter().map(|(left, right)| Edge { left, right }).collect();
            let right = |node| edges.iter().filter(|edge| edge.right == node).count();
            let left = |node| edges.iter().filter(|edge| edge.left == Some(node)).count();
            let most = (0..6).map(right).chain((0..4).map(left)).max().unwrap_or(0);
            let colours = colour(&edges, 4, 6, most).unwrap();
            for (i, a) in edges.iter().enumerate() {
                prop_assert!(colours[i] < most);
                for (j, b) in edges.iter().enumerate().skip(i + 1) {
                    let meet = a.right == b.right || a.left.is_some() && a.left == b.left;
                    prop_assert!(!meet || colours[i] != colours[j]);
                }
            }
            if most > 0 {
                prop_assert!(colour(&edges, 4, 6, most - 1).is_none());
            }
        }
    }
}
