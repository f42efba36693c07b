// Package taskfile keeps the tasks that a server has answered with, so that any
// process with the same home finds them again: after a restart, after a kill, and
// while another process serves them.
//
// Each task has a file of its own in codex-mcp/tasks below the home, which is
// replaced at each change and on the disk before the change returns. A file names
// the server that wrote it. Each server holds a lock on one file for its life, which
// the system releases when the process ends: an unfinished task whose server has no
// lock any more will not be finished by anybody.
//
// The package compares no principals: a caller does, before it shows a task.
package taskfile
