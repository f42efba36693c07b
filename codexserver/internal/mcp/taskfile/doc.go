// Package taskfile keeps tasks in files, so that any process with the same home finds them:
// after a restart, after a kill, and while another process serves them.
//
// Each task has a file in codex-mcp/tasks below the home. Each change replaces the file, and
// returns when the new one is on disk. A file names the server that wrote it. Each server
// holds a lock on one file for its whole life, which the system releases when the process
// ends. So an unfinished task whose server has no lock will never finish.
//
// The package does not compare principals. The caller must do that before it shows a task.
package taskfile
