/* SPDX-License-Identifier: MIT */
#ifndef BASE_GIT_H
#define BASE_GIT_H

#include <git2.h>
#include <git2/sys/odb_backend.h>
#include <git2/sys/repository.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * libgit2, loaded when it is first needed (base/library.h): loading and initialising it costs some
 * milliseconds and MiB, and most starts do not need it. Here it opens no connection, reads no
 * configuration file except those it is told to, and keeps its caches small.
 *
 * GIT_FUNCTIONS is the one list of the functions in use, without the "git_". A name added to it can
 * be called as git->name, with the type from libgit2's own declaration.
 */
#define GIT_FUNCTIONS(X)                                                                           \
	X(attr_cache_flush)                                                                        \
	X(buf_dispose)                                                                             \
	X(commit_author)                                                                           \
	X(commit_free)                                                                             \
	X(commit_id)                                                                               \
	X(commit_lookup)                                                                           \
	X(commit_message)                                                                          \
	X(commit_parent_id)                                                                        \
	X(commit_parentcount)                                                                      \
	X(commit_summary)                                                                          \
	X(commit_time)                                                                             \
	X(commit_tree_id)                                                                          \
	X(config_add_file_ondisk)                                                                  \
	X(config_foreach)                                                                          \
	X(config_free)                                                                             \
	X(config_get_string_buf)                                                                   \
	X(config_new)                                                                              \
	X(diff_free)                                                                               \
	X(diff_get_delta)                                                                          \
	X(diff_num_deltas)                                                                         \
	X(diff_print)                                                                              \
	X(diff_tree_to_tree)                                                                       \
	X(error_clear)                                                                             \
	X(error_last)                                                                              \
	X(ignore_path_is_ignored)                                                                  \
	X(index_find)                                                                              \
	X(index_find_prefix)                                                                       \
	X(index_free)                                                                              \
	X(index_open)                                                                              \
	X(libgit2_init)                                                                            \
	X(libgit2_opts)                                                                            \
	X(libgit2_shutdown)                                                                        \
	X(merge_file)                                                                              \
	X(merge_file_result_free)                                                                  \
	X(odb_add_backend)                                                                         \
	X(odb_backend_loose)                                                                       \
	X(odb_backend_one_pack)                                                                    \
	X(odb_backend_pack)                                                                        \
	X(odb_exists)                                                                              \
	X(odb_exists_ext)                                                                          \
	X(odb_foreach)                                                                             \
	X(odb_free)                                                                                \
	X(odb_hash)                                                                                \
	X(odb_hashfile)                                                                            \
	X(odb_init_backend)                                                                        \
	X(odb_new)                                                                                 \
	X(odb_object_data)                                                                         \
	X(odb_object_free)                                                                         \
	X(odb_object_size)                                                                         \
	X(odb_object_type)                                                                         \
	X(odb_open_rstream)                                                                        \
	X(odb_open_wstream)                                                                        \
	X(odb_read)                                                                                \
	X(odb_read_header)                                                                         \
	X(odb_stream_finalize_write)                                                               \
	X(odb_stream_free)                                                                         \
	X(odb_stream_read)                                                                         \
	X(odb_stream_write)                                                                        \
	X(odb_write)                                                                               \
	X(oid_fromstr)                                                                             \
	X(oid_tostr)                                                                               \
	X(packbuilder_foreach)                                                                     \
	X(packbuilder_free)                                                                        \
	X(packbuilder_insert_recur)                                                                \
	X(packbuilder_insert_walk)                                                                 \
	X(packbuilder_new)                                                                         \
	X(patch_free)                                                                              \
	X(patch_from_diff)                                                                         \
	X(patch_line_stats)                                                                        \
	X(pathspec_free)                                                                           \
	X(pathspec_matches_path)                                                                   \
	X(pathspec_new)                                                                            \
	X(reference_create)                                                                        \
	X(reference_free)                                                                          \
	X(reference_iterator_free)                                                                 \
	X(reference_iterator_glob_new)                                                             \
	X(reference_iterator_new)                                                                  \
	X(reference_lookup)                                                                        \
	X(reference_name_is_valid)                                                                 \
	X(reference_name_to_id)                                                                    \
	X(reference_next_name)                                                                     \
	X(reference_symbolic_target)                                                               \
	X(repository_commondir)                                                                    \
	X(repository_free)                                                                         \
	X(repository_init)                                                                         \
	X(repository_odb)                                                                          \
	X(repository_open_ext)                                                                     \
	X(repository_path)                                                                         \
	X(repository_set_odb)                                                                      \
	X(repository_set_workdir)                                                                  \
	X(repository_workdir)                                                                      \
	X(revwalk_free)                                                                            \
	X(revwalk_hide)                                                                            \
	X(revwalk_new)                                                                             \
	X(revwalk_push)                                                                            \
	X(tree_create_updated)                                                                     \
	X(tree_entry_byindex)                                                                      \
	X(tree_entry_byname)                                                                       \
	X(tree_entry_bypath)                                                                       \
	X(tree_entry_filemode)                                                                     \
	X(tree_entry_filemode_raw)                                                                 \
	X(tree_entry_free)                                                                         \
	X(tree_entry_id)                                                                           \
	X(tree_entry_name)                                                                         \
	X(tree_entrycount)                                                                         \
	X(tree_free)                                                                               \
	X(tree_lookup)                                                                             \
	X(treebuilder_free)                                                                        \
	X(treebuilder_insert)                                                                      \
	X(treebuilder_new)                                                                         \
	X(treebuilder_remove)                                                                      \
	X(treebuilder_write)

#define GIT_MEMBER(name) __typeof__(git_##name) *(name);
struct git {
	GIT_FUNCTIONS(GIT_MEMBER)
};
#undef GIT_MEMBER

/*
 * Returns the library, loaded and initialised. Every git_open is balanced by a git_close; the last
 * one shuts libgit2 down and unloads it. After that nothing of libgit2 may be used, on any thread.
 * ERROR_UNAVAILABLE if the library or one of its functions is missing; the text names the package
 * to install. Any thread; may block for some milliseconds.
 */
const struct git *git_open(struct error *err) ATTR_NODISCARD;
void git_close(void);

/*
 * From now on the last git_close leaves the library loaded. For callers that use it on threads that
 * outlive that git_close: libgit2's data of a thread is freed when the thread ends, and only
 * libgit2 can free it. Call it between open and close.
 */
void git_keep_loaded(void);

/*
 * Forgets this thread's errno and libgit2's message. Call it right before a call that writes:
 * earlier successful calls leave messages behind, and a write that fails adds none.
 */
void git_forget_error(const struct git *git);

/*
 * Sets ERROR_SYSTEM; appends libgit2's last message of this thread to the text, or errno's if there
 * is none. Call it right after the call that failed.
 */
bool error_set_git(const struct git *git, struct error *err, const char *format, ...)
	ATTR_PRINTF(3, 4);

#endif
