//! Parameters as the text that gives them.

use super::{CacheShape, Parameters};
use core::fmt;

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, cache) in ["l1d", "l2", "l3"].into_iter().zip(&self.caches) {
            match cache {
                Some(CacheShape { bytes, ways, policy, cycles }) => {
                    match bytes.is_multiple_of(1024) {
                        true => write!(f, "{key}={}k", bytes / 1024)?,
                        false => write!(f, "{key}={bytes}")?,
                    }
                    write!(f, "/{ways}:{policy}@{cycles},")?;
                }
                None => write!(f, "{key}=none,")?,
            }
        }
        if let Some(CacheShape { bytes, ways, cycles, .. }) = self.code {
            write!(f, "l1i={bytes}/{ways}@{cycles},")?;
        }
        let Self { line, memory_cycles, dtlb, dtlb_large, walk_cycles, .. } = self;
        write!(f, "memory={memory_cycles},line={line},dtlb={}/{}", dtlb.entries, dtlb.ways)?;
        write!(f, ",dtlb2m={}/{}", dtlb_large.entries, dtlb_large.ways)?;
        match self.stlb {
            Some(stlb) => {
                write!(f, ",stlb={}/{}@{}", stlb.entries, stlb.ways, self.stlb_cycles)?;
            }
            None => f.write_str(",stlb=none")?,
        }
        write!(f, ",walk={walk_cycles},split={},cross={}", self.split_cycles, self.cross_cycles)?;
        write!(f, ",mispredict={}", self.mispredict_cycles)?;
        let [same, narrow, offset, wide, cross, alias] = self.forward.list();
        write!(f, ",forward={same}/{narrow}/{offset}/{wide}/{cross}/{alias}")?;
        match self.stores {
            0 => f.write_str(",stores=none")?,
            stores => write!(f, ",stores={stores}")?,
        }
        let [l2, l3, memory, stream] = self.transfer.list();
        write!(f, ",transfer={l2}/{l3}/{memory}/{stream}")?;
        let [pair, next, after, ahead, stride] = self.prefetch.list();
        write!(f, ",prefetch={pair}/{next}/{after}/{ahead}/{stride}")?;
        let keys = ["rob", "registers", "vectors", "loads", "scheduler"];
        for (key, entries) in keys.iter().zip(self.window.list()).filter(|(_, one)| *one > 0) {
            write!(f, ",{key}={entries}")?;
        }
        write!(f, ",returns={}", self.returns)?;
        write!(f, ",btb={}/{}", self.btb.entries, self.btb.ways)?;
        if let Some(direct) = self.direct {
            write!(f, ",direct={}/{}@{}", direct.entries, direct.ways, self.direct_cycles)?;
        }
        let Some(ports) = &self.ports else { return Ok(()) };
        write!(f, ",ports={ports}")?;
        match ports.issue {
            0 => return Ok(()),
            issue => write!(f, ",issue={issue}")?,
        }
        let [uops, ways, line, block, decode, looped, outside] = self.front.list();
        if uops > 0 {
            write!(f, ",uops={uops}/{ways}/{line}/{block}@{decode}")?;
        }
        if looped > 0 {
            write!(f, ",loop={looped}@{outside}")?;
        }
        Ok(())
    }
}
