//! The snippets, counted by hand, and what each model's events say of them.

use pmu_model::Model;

/// 20 instructions. Branches: a relative and an indirect call, their two returns, two relative jumps and an indirect
/// one; of conditional ones, one forward taken, one not, two backward taken and the loop's last, not taken.
pub const BRANCHES: &str = "
call 3f
jmp 4f
3: ret
4: xor eax, eax
test eax, eax
jnz 5f
jz 5f
nop
5: lea rax, [rip + 6f]
call rax
jmp 7f
6: ret
7: lea rax, [rip + 8f]
jmp rax
ud2
8: mov ecx, 3
9: dec ecx
jnz 9b";

/// A return that no call belongs to: its target cannot be known. A store and a load besides.
pub const LOST_RETURN: &str = "lea rax, [rip + 2f]; push rax; ret; 2:";

/// A far return to the next instruction.
pub const FAR: &str = "mov eax, cs; push rax; lea rax, [rip + 2f]; push rax; .byte 0x48, 0xcb; 2:";

/// Accesses: 2 loads, a store, two that do both, one of them locked; a load and a store across a line's end; a push and
/// a pop. So 4 load only, 3 store only, 2 do both.
pub const ACCESSES: &str = "
mov rax, [r14]
mov rbx, [r14 + 8]
mov [r14 + 64], rax
add [r14 + 128], rax
lock add [r14 + 192], rax
mov rax, [r14 + 60]
mov [r14 + 124], rax
push rax
pop rax";

/// A load of a line that is in no cache.
pub const FLUSHED: &str = "clflush [r14]; mov rax, [r14]";

pub const PLAIN: &str = "add rax, 1; add rbx, 1; nop";

/// A snippet, and for each name how often it happens in one execution.
pub type Group = (&'static str, &'static str, &'static [(&'static str, u64)]);

pub const NEHALEM: &[Group] = &[
    ("plain", PLAIN, &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("UOPS_RETIRED.ANY", 20),
            ("BR_INST_RETIRED.CONDITIONAL", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_EXEC.COND", 5),
            ("BR_INST_EXEC.DIRECT", 2),
            ("BR_INST_EXEC.INDIRECT_NON_CALL", 1),
            ("BR_INST_EXEC.RETURN_NEAR", 2),
            ("BR_INST_EXEC.DIRECT_NEAR_CALL", 1),
            ("BR_INST_EXEC.INDIRECT_NEAR_CALL", 1),
            ("BR_INST_EXEC.TAKEN", 10),
            ("BR_INST_EXEC.ANY", 12),
        ],
    ),
    ("lost return", LOST_RETURN, &[("BR_MISP_EXEC.RETURN_NEAR", 1), ("BR_MISP_EXEC.ANY", 1)]),
    (
        "accesses",
        ACCESSES,
        &[("MEM_INST_RETIRED.LOADS", 6), ("MEM_INST_RETIRED.STORES", 5), ("L1D_ALL_REF.ANY", 9)],
    ),
    (
        "flushed",
        FLUSHED,
        &[("MEM_LOAD_RETIRED.LLC_MISS", 1), ("L1D.REPL", 1), ("LONGEST_LAT_CACHE.MISS", 1)],
    ),
];

pub const HASWELL: &[Group] = &[
    (
        "plain",
        PLAIN,
        &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3), ("CPL_CYCLES.RING0", 3)],
    ),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("UOPS_RETIRED.ALL", 20),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_RETIRED.CONDITIONAL", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.NEAR_RETURN", 2),
            ("BR_INST_RETIRED.NOT_TAKEN", 2),
            ("BR_INST_RETIRED.NEAR_TAKEN", 10),
            ("BR_INST_EXEC.ALL_BRANCHES", 12),
        ],
    ),
    (
        "lost return",
        LOST_RETURN,
        &[("BR_MISP_RETIRED.ALL_BRANCHES", 1), ("BR_MISP_RETIRED.NEAR_TAKEN", 1)],
    ),
    ("far return", FAR, &[("BR_INST_RETIRED.FAR_BRANCH", 1)]),
    (
        "accesses",
        ACCESSES,
        &[
            ("MEM_UOPS_RETIRED.LOCK_LOADS", 1),
            ("MEM_UOPS_RETIRED.SPLIT_LOADS", 1),
            ("MEM_UOPS_RETIRED.SPLIT_STORES", 1),
            ("MEM_UOPS_RETIRED.ALL_LOADS", 6),
            ("MEM_UOPS_RETIRED.ALL_STORES", 5),
        ],
    ),
    (
        "flushed",
        FLUSHED,
        &[
            ("MEM_LOAD_UOPS_RETIRED.L1_MISS", 1),
            ("MEM_LOAD_UOPS_RETIRED.L3_MISS", 1),
            ("L1D.REPLACEMENT", 1),
            ("LONGEST_LAT_CACHE.MISS", 1),
        ],
    ),
];

/// Memory events that Skylake, Ice Lake, Sapphire Rapids and Lion Cove have by the same names.
pub const INTEL_ACCESSES: Group = (
    "accesses",
    ACCESSES,
    &[
        ("MEM_INST_RETIRED.LOCK_LOADS", 1),
        ("MEM_INST_RETIRED.SPLIT_LOADS", 1),
        ("MEM_INST_RETIRED.SPLIT_STORES", 1),
        ("MEM_INST_RETIRED.ALL_LOADS", 6),
        ("MEM_INST_RETIRED.ALL_STORES", 5),
        ("MEM_INST_RETIRED.ANY", 9),
    ],
);
pub const INTEL_FLUSHED: Group = (
    "flushed",
    FLUSHED,
    &[
        ("MEM_LOAD_RETIRED.L1_MISS", 1),
        ("MEM_LOAD_RETIRED.L3_MISS", 1),
        ("L1D.REPLACEMENT", 1),
        ("LONGEST_LAT_CACHE.MISS", 1),
    ],
);

pub const SKYLAKE: &[Group] = &[
    ("plain", PLAIN, &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("UOPS_EXECUTED.THREAD", 20),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_RETIRED.CONDITIONAL", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.NEAR_RETURN", 2),
            ("BR_INST_RETIRED.NOT_TAKEN", 2),
            ("BR_INST_RETIRED.NEAR_TAKEN", 10),
        ],
    ),
    (
        "lost return",
        LOST_RETURN,
        &[("BR_MISP_RETIRED.ALL_BRANCHES", 1), ("BR_MISP_RETIRED.NEAR_TAKEN", 1)],
    ),
    ("far return", FAR, &[("BR_INST_RETIRED.FAR_BRANCH", 1)]),
    INTEL_ACCESSES,
    INTEL_FLUSHED,
];

pub const INTEL_LOST_RETURN: Group = (
    "lost return",
    LOST_RETURN,
    &[
        ("BR_MISP_RETIRED.ALL_BRANCHES", 1),
        ("BR_MISP_RETIRED.RET", 1),
        ("BR_MISP_RETIRED.NEAR_TAKEN", 1),
    ],
);
pub const INTEL_FAR: Group = ("far return", FAR, &[("BR_INST_RETIRED.FAR_BRANCH", 1)]);

pub const ICE_LAKE: &[Group] = &[
    ("plain", PLAIN, &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_RETIRED.COND_TAKEN", 3),
            ("BR_INST_RETIRED.COND_NTAKEN", 2),
            ("BR_INST_RETIRED.COND", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.NEAR_RETURN", 2),
            ("BR_INST_RETIRED.NEAR_TAKEN", 10),
            ("BR_INST_RETIRED.INDIRECT", 2),
        ],
    ),
    INTEL_LOST_RETURN,
    INTEL_FAR,
    INTEL_ACCESSES,
    INTEL_FLUSHED,
];

pub const ARROW_LAKE: &[Group] = &[
    ("plain", PLAIN, &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("UOPS_EXECUTED.THREAD", 20),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_RETIRED.COND_TAKEN_BWD", 2),
            ("BR_INST_RETIRED.COND_TAKEN_FWD", 1),
            ("BR_INST_RETIRED.COND_TAKEN", 3),
            ("BR_INST_RETIRED.COND_NTAKEN", 2),
            ("BR_INST_RETIRED.COND", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.NEAR_RETURN", 2),
            ("BR_INST_RETIRED.NEAR_TAKEN", 10),
            ("BR_INST_RETIRED.INDIRECT", 2),
        ],
    ),
    INTEL_LOST_RETURN,
    INTEL_FAR,
    INTEL_ACCESSES,
    INTEL_FLUSHED,
];

pub const COUGAR_COVE: &[Group] = &[
    ("plain", PLAIN, &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("UOPS_EXECUTED.THREAD", 20),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_RETIRED.COND_TAKEN_BWD", 2),
            ("BR_INST_RETIRED.COND_TAKEN_FWD", 1),
            ("BR_INST_RETIRED.COND_TAKEN", 3),
            ("BR_INST_RETIRED.COND_NTAKEN", 2),
            ("BR_INST_RETIRED.COND", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.NEAR_RETURN", 2),
            ("BR_INST_RETIRED.NEAR_TAKEN", 10),
            ("BR_INST_RETIRED.NEAR_INDIRECT_CALL", 1),
            ("BR_INST_RETIRED.NEAR_DIRECT_CALL", 1),
            ("BR_INST_RETIRED.NEAR_INDIRECT_JMP", 1),
            ("BR_INST_RETIRED.NEAR_DIRECT_JMP", 2),
            ("BR_INST_RETIRED.NEAR_JMP", 3),
            ("BR_INST_RETIRED.INDIRECT", 2),
        ],
    ),
    INTEL_LOST_RETURN,
    INTEL_FAR,
    INTEL_ACCESSES,
    INTEL_FLUSHED,
];

/// Names that Zen 2 and Zen 4 share.
pub const ZEN_FAR: Group = ("far return", FAR, &[("ex_ret_brn_far", 1)]);
pub const ZEN_CPUID: Group = ("cpuid", "xor eax, eax; cpuid", &[("ls_ret_cpuid", 1)]);

pub const ZEN2: &[Group] = &[
    ("plain", PLAIN, &[("ls_not_halted_cyc", 3), ("ex_ret_instr", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("ex_ret_cops", 20),
            ("ex_ret_brn", 12),
            ("ex_ret_brn_tkn", 10),
            ("ex_ret_near_ret", 2),
            ("ex_ret_cond", 5),
        ],
    ),
    (
        "lost return",
        LOST_RETURN,
        &[("ex_ret_brn_misp", 1), ("ex_ret_brn_tkn_misp", 1), ("ex_ret_near_ret_mispred", 1)],
    ),
    ZEN_FAR,
    ZEN_CPUID,
    (
        "accesses",
        ACCESSES,
        &[
            ("ls_locks.non_spec_lock", 1),
            ("ls_dispatch.ld_dispatch", 4),
            ("ls_dispatch.store_dispatch", 3),
            ("ls_dispatch.ld_st_dispatch", 2),
            ("ls_dc_accesses", 9),
        ],
    ),
    (
        "flushed",
        FLUSHED,
        &[
            ("ls_ret_cl_flush", 1),
            ("ls_mab_alloc.loads", 1),
            ("ls_refills_from_sys.ls_mabresp_lcl_dram", 1),
            ("l2_cache_req_stat.ls_rd_blk_c", 1),
        ],
    ),
];

pub const ZEN4: &[Group] = &[
    ("plain", PLAIN, &[("ls_not_halted_cyc", 3), ("ex_ret_instr", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("ex_ret_ops", 20),
            ("ex_ret_brn", 12),
            ("ex_ret_brn_tkn", 10),
            ("ex_ret_near_ret", 2),
            ("ex_ret_cond", 5),
            ("ex_ret_ind_brch_instr", 2),
            ("ex_ret_uncond_brnch_instr", 7),
        ],
    ),
    (
        "lost return",
        LOST_RETURN,
        &[
            ("ex_ret_brn_misp", 1),
            ("ex_ret_brn_tkn_misp", 1),
            ("ex_ret_near_ret_mispred", 1),
            ("ex_ret_uncond_brnch_instr_mispred", 1),
        ],
    ),
    ZEN_FAR,
    ZEN_CPUID,
    (
        "accesses",
        ACCESSES,
        &[
            ("ls_dispatch.ld_dispatch", 4),
            ("ls_dispatch.store_dispatch", 3),
            ("ls_dispatch.ld_st_dispatch", 2),
        ],
    ),
    (
        "flushed",
        FLUSHED,
        &[
            ("ls_ret_cl_flush", 1),
            ("ls_mab_alloc.load_store_allocations", 1),
            ("ls_dmnd_fills_from_sys.dram_io_near", 1),
            ("l2_cache_req_stat.ls_rd_blk_c", 1),
        ],
    ),
];

pub const MODELS: [(Model, &[Group]); 9] = [
    (Model::Nehalem, NEHALEM),
    (Model::Haswell, HASWELL),
    (Model::Skylake, SKYLAKE),
    (Model::IceLake, ICE_LAKE),
    (Model::SapphireRapids, ICE_LAKE),
    (Model::ArrowLake, ARROW_LAKE),
    (Model::CougarCove, COUGAR_COVE),
    (Model::Zen2, ZEN2),
    (Model::Zen4, ZEN4),
];
