# SPDX-License-Identifier: Apache-2.0
"""What went wrong elsewhere with addresses (B), symbols and debug data (C), perf maps (D), folded text, diffs and graphs (F),
and the tests that show it right here.

A test that is renamed or taken away must be looked for here too: a row is never without one.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
REPORTS = "e2e/test_field_reports.py"
SYMBOLS, DWARF, PROCESS, COLLECT = "server/symbols", "server/symbols/dwarf", "agent/process", "agent/collect"

CASES: dict[str, tuple[str, ...]] = {
    # Two executable segments, .text not in the first.
    "B2": (
        f"{SYMBOLS}/test_resolve.py::test_segment_that_is_not_at_its_offset",
        f"{COLLECT}/test_window.py::test_two_executable_segments_keep_their_own_offsets",
    ),
    # Several code segments with different shifts.
    "B3": (
        f"{SYMBOLS}/test_resolve.py::test_two_code_segments_with_different_shifts",
        f"{SYMBOLS}/test_resolve.py::test_real_program_with_a_far_section",
    ),
    # A debug-only file lacks the load segments.
    "B5": (
        f"{SYMBOLS}/test_resolve.py::test_no_segment_no_name",
        f"{SYMBOLS}/test_resolve.py::test_debug_file_is_read_by_the_segments_of_the_running_binary",
        f"{SYMBOLS}/test_elf.py::test_stripped_program_and_debug_file_give_the_union",
    ),
    # A shared library whose offsets are not its addresses.
    "B6": (f"{SYMBOLS}/test_resolve.py::test_shared_library_whose_addresses_are_not_its_offsets",),
    # The mapping that is not executable is ignored.
    "B7": (
        f"{PROCESS}/test_maps.py::test_only_executable_mappings_are_kept",
        f"{SYMBOLS}/test_resolve.py::test_executable_segment_is_asked_first_and_vaddr_may_be_below_offset",
    ),
    # Compiled code in memory that is not even executable.
    "B8": (
        f"{COLLECT}/test_locate.py::test_addresses_take_the_names_of_a_perf_map_even_outside_executable_mappings",
        f"{COLLECT}/test_window.py::test_perf_map_names_jit_code_even_where_memory_is_not_executable",
    ),
    # map_files is not there.
    "B10": (
        f"{PROCESS}/test_open_file.py::test_a_file_is_found_by_path_inside_the_root",
        f"{PROCESS}/test_open_file.py::test_another_inode_at_the_path_is_not_taken",
        f"{PROCESS}/test_open_file.py::test_a_deleted_file_is_read_by_map_files",
    ),
    # The vDSO, and [vsyscall].
    "B11": (
        f"{SYMBOLS}/test_resolve.py::test_the_vdso_is_named_from_what_the_agent_sends_of_it",
        f"{COLLECT}/test_window.py::test_places_without_a_file_get_their_mark",
    ),
    # Ids that are no build ids are not asked for.
    "B13": (f"{SYMBOLS}/test_namer.py::test_ids_that_are_no_build_ids_are_never_asked_for",),
    # A sized symbol ends where it ends.
    "C1": (f"{SYMBOLS}/test_symtab.py::test_sized_symbols_leave_gaps_unnamed",),
    # Functions of assembly have no size.
    "C2": (
        f"{SYMBOLS}/test_symtab.py::test_symbols_without_size_reach_to_the_next_and_say_so",
        f"{SYMBOLS}/test_elf.py::test_labels_of_assembly_are_named_and_inexact",
    ),
    # A symbol of vmlinux without a size, and the kernel's own list.
    "C4": (
        f"{SYMBOLS}/test_kernel_parts.py::test_the_list_of_the_kernel_wins_over_symbols_without_size",
        f"{SYMBOLS}/test_workshop.py::test_a_kernel_has_its_list_and_its_debug_file",
    ),
    # Cold parts.
    "C7": (
        f"{SYMBOLS}/test_elf.py::test_cold_part_of_a_function_has_its_own_range",
        f"{SYMBOLS}/test_namebook.py::test_cold_part_is_the_same_function",
    ),
    # What compilers hang on to names.
    "C8": (f"{SYMBOLS}/test_demangle.py::test_compiler_suffixes_and_versions_are_cut_for_display",),
    # Folded functions.
    "C9": (
        f"{SYMBOLS}/test_elf.py::test_folded_functions_have_one_name_by_a_fixed_rule",
        f"{SYMBOLS}/test_elf_parts.py::test_aliases_of_folded_functions_are_kept",
    ),
    # Entries that send in circles.
    "C11": (f"{DWARF}/test_naming.py::test_entries_that_send_in_circles_have_no_name",),
    # The innermost inlined call.
    "C13": (f"{DWARF}/test_read.py::test_an_inlined_call_at_the_very_start_is_seen",),
    # Rows of line 0.
    "C14": (f"{SYMBOLS}/test_unfold.py::test_line_0_is_no_line",),
    # Headers of DWARF 4 and 5.
    "C16": (f"{SYMBOLS}/test_elf_parts.py::test_every_function_as_other_tools_name_it",),
    # Ranges by index.
    "C17": (f"{SYMBOLS}/test_elf_parts.py::test_programs_of_clang",),
    # Code that the linker threw away.
    "C19": (f"{DWARF}/test_read.py::test_functions_that_the_linker_threw_away_name_nothing",),
    # Code at address 0.
    "C20": (f"{DWARF}/test_read.py::test_code_at_address_0_is_code",),
    # Links to debug files and to common ones.
    "C21": (
        f"{SYMBOLS}/test_debug_links.py::test_debug_link_by_crc",
        f"{SYMBOLS}/test_debug_links.py::test_common_file_by_build_id_or_below_dwz",
        f"{DWARF}/test_naming.py::test_names_are_found_in_the_common_file_of_dwz",
        f"{DWARF}/test_read.py::test_a_debug_file_beside_a_stripped_program",
    ),
    # A link to itself, or to other bytes.
    "C23": (f"{SYMBOLS}/test_local.py::test_link_with_other_bytes_or_to_itself_is_passed_over",),
    # Two tables of symbols.
    "C24": (
        f"{SYMBOLS}/test_symtab.py::test_union_of_two_tables",
        f"{SYMBOLS}/test_elf.py::test_stripped_program_and_debug_file_give_the_union",
    ),
    # Sections that inflate without end.
    "C26": (f"{SYMBOLS}/test_elf_sections.py::test_a_bomb_is_refused_before_it_is_inflated",),
    # Headers of no size, or of too many sections.
    "C27": (
        f"{SYMBOLS}/test_elf.py::test_broken_section_headers_leave_the_dynamic_symbols",
        f"{SYMBOLS}/test_elf.py::test_two_to_the_62_sections_are_none",
    ),
    # Headers of 0xff, files that were cut.
    "C29": (
        f"{SYMBOLS}/test_elf.py::test_broken_section_headers_leave_the_dynamic_symbols",
        f"{SYMBOLS}/test_build_child.py::test_a_cut_file_ends_well_at_every_length",
    ),
    # Every failure is one of the words.
    "C30": (f"{SYMBOLS}/test_build_child.py::test_mutated_files_always_end_in_one_of_four_words",),
    # Notes behind a padded one.
    "C32": (
        f"{SYMBOLS}/test_notes.py::test_build_id_after_a_property_note_padded_to_eight",
        f"{SYMBOLS}/test_elf.py::test_build_id_of_a_program_with_a_property_note",
    ),
    # Notes by owner and type.
    "C33": (f"{SYMBOLS}/test_notes.py::test_note_counts_by_owner_and_type",),
    # Debug data that takes too much.
    "C35": (
        f"{DWARF}/test_read.py::test_debug_data_that_takes_too_long_gives_names_alone",
        f"{SYMBOLS}/test_build_child.py::test_memory_limit_ends_as_limit",
    ),
    # One bad unit.
    "C36": (f"{DWARF}/test_read.py::test_one_broken_unit_costs_its_own_calls_only",),
    # One build id, other code.
    "C38": (
        f"{SYMBOLS}/test_namer.py::test_same_build_id_other_code_never_crosses",
        f"{SYMBOLS}/test_namer.py::test_debug_file_of_other_code_with_the_same_build_id_names_nothing",
        f"{SYMBOLS}/test_table_cache.py::test_same_build_id_other_content_are_two_tables",
    ),
    # The better file wins, whatever came first.
    "C40": (
        f"{SYMBOLS}/test_namer.py::test_better_replaces_worse_and_history_renames_itself",
        f"{SYMBOLS}/test_table_cache.py::test_a_poorer_table_does_not_replace_a_better_one",
    ),
    # Better names show in what was stored before.
    "C41": (f"{SYMBOLS}/test_namebook.py::test_a_better_table_replaces_names",),
    # Answers that are no debug files.
    "C42": (f"{SYMBOLS}/test_debuginfod.py::test_server_that_lies_stalls_or_fails",),
    # Once an hour, and not at all from a server that is down.
    "C43": (
        f"{SYMBOLS}/test_fetcher.py::test_once_an_hour_whatever_the_answer",
        f"{SYMBOLS}/test_fetcher.py::test_server_that_fails_is_left_alone_and_the_rest_waits",
    ),
    # Mangled names of all kinds, and hostile ones.
    "C44": (
        f"{SYMBOLS}/test_demangle.py::test_golden_names",
        f"{SYMBOLS}/test_demangle.py::test_hostile_names_come_to_an_end",
        "server/profile/test_packages.py::test_type_arguments_of_go_are_left_out",
        f"{SYMBOLS}/test_jit.py::test_jvm_descriptors_are_made_readable_and_nothing_else",
    ),
    # Partial units.
    "C45": (f"{SYMBOLS}/test_namer.py::test_common_file_of_dwz_is_fetched_too",),
    # A perf map that grows, or is written anew.
    "D3": (
        f"{PROCESS}/test_perf_map_file.py::test_a_map_that_grows_is_cut_and_rewritten_is_followed",
        f"{PROCESS}/test_perf_map.py::test_the_last_line_counts_when_it_is_whole",
    ),
    # No map.
    "D4": (
        f"{COLLECT}/test_window.py::test_places_without_a_file_get_their_mark",
        f"{SYMBOLS}/test_desk.py::test_code_that_a_run_time_made",
    ),
    # A kernel without names.
    "D5": (f"{COLLECT}/test_window.py::test_a_hidden_kernel_leaves_names_of_compiled_code",),
    # Brackets, commas, brackets of Go and C++ in names.
    "F2": (f"{REPORTS}::test_names_are_whole_from_folded_text_to_the_graph",),
    # Semicolons and bars inside of a frame.
    "F3": (
        f"{REPORTS}::test_names_are_whole_from_folded_text_to_the_graph",
        "server/interop/test_folded.py::test_import_of_export_is_the_same",
    ),
    # Spaces in names of files and threads.
    "F4": (f"{REPORTS}::test_names_are_whole_from_folded_text_to_the_graph",),
    # Lines that are no stacks.
    "F5": (
        f"{REPORTS}::test_lines_that_are_no_stacks_are_counted_with_their_number_and_reason",
        "server/cli/test_diff.py::test_a_file_that_holds_no_stack_is_an_empty_side",
    ),
    # Control characters and markup.
    "F6": (
        f"{REPORTS}::test_names_are_whole_from_folded_text_to_the_graph",
        "web/test_states.py::test_every_hostile_name_can_be_read_in_the_table_and_the_tooltip",
        "web/core/text.test.mjs::control characters are shown, not obeyed",
    ),
    # Names cut at any width.
    "F7": ("web/core/text.test.mjs::a name cut at any width is no longer than that, and no character of it is halved",),
    # Entities that XML does not know.
    "F8": ("web/test_core.py::test_pictures_are_well_formed_and_no_entity_is_one_of_html_alone",),
    # Names that would run.
    "F9": (
        f"{REPORTS}::test_names_are_whole_from_folded_text_to_the_graph",
        "web/test_states.py::test_hostile_names_are_text_everywhere",
        "web/test_compare.py::test_hostile_names_do_nothing",
        "server/http/test_api.py::test_markup_in_names_is_only_text",
    ),
    # Vanished stacks, each counted once.
    "F12": (
        f"{REPORTS}::test_vanished_stacks_are_in_the_union_once_and_the_same_twice_is_all_zero",
        "server/profile/test_diff.py::test_vanished_code_is_seen_and_counted_by_poisson",
        "server/http/test_diff_routes.py::test_union_has_what_vanished",
        "web/test_compare.py::test_shapes_are_linked_and_show_what_is_new_and_what_is_gone",
    ),
    # Other rates and durations, and a side of nothing.
    "F13": (
        f"{REPORTS}::test_rate_and_duration_are_no_change_and_an_empty_side_is_said",
        "server/profile/test_diff.py::test_rate_and_duration_are_no_change",
        "server/profile/test_diff.py::test_an_empty_side_makes_no_numbers_that_are_none",
        "web/test_compare.py::test_an_empty_side_is_said_in_words",
    ),
    # A chain of 70 frames.
    "F16": (f"{REPORTS}::test_a_chain_of_70_with_two_leaves_stays_two_stacks",),
    # 30,000 frames.
    "F17": (
        f"{REPORTS}::test_a_stack_of_30_000_frames_is_drawn_and_no_stacks_are_an_answer",
        "server/http/test_api.py::test_a_stack_of_30000_frames_is_answered",
        "server/interop/test_folded_diff.py::test_a_stack_of_30000_frames",
        "web/test_flame_graph.py::test_a_stack_of_30_000_frames_is_drawn_and_scrolls",
    ),
    # Nothing at all.
    "F18": (
        f"{REPORTS}::test_a_stack_of_30_000_frames_is_drawn_and_no_stacks_are_an_answer",
        "web/test_states.py::test_an_empty_profile_says_why_and_leads_to_the_nearest_data",
        "web/test_compare.py::test_two_empty_sides_are_said_too",
    ),
    # A million stacks of 40 frames: `python -m tests.bench folded`; and in small.
    "F20": ("server/interop/test_folded_diff.py::test_memory_grows_with_distinct_stacks_and_not_with_the_file",),
    # Instances of a generic function.
    "F22": (
        f"{REPORTS}::test_generic_instances_stay_apart",
        "server/query/test_operators.py::test_instances_of_a_generic_function_are_apart_until_they_are_merged",
    ),
    # Lines of a function.
    "F23": (
        f"{REPORTS}::test_lines_of_a_function_are_one_node",
        "server/profile/test_partnames.py::test_a_function_is_one_name_whatever_the_line",
    ),
}


@pytest.mark.parametrize("row", CASES)
def test_every_row_has_its_tests(row: str) -> None:
    for node in CASES[row]:
        path, _, name = node.partition("::")
        begin = rf'^test\("{re.escape(name)}"' if path.endswith(".mjs") else rf"^def {name}\("
        assert re.search(begin, (ROOT / path).read_text(), re.MULTILINE), f"{row}: there is no {node}"
