// Package report says what one turn did, for the structured result of the tools.
//
//	turnlog.Turn ──▶ Watch ──▶ protocol.TurnResult
//	                   │
//	          repo.Snapshot, before and after
//
// A [Watch] takes a snapshot of the folder before the turn and compares the folder with it
// afterwards. So it finds the changes of commands as well as those of patches, and does not
// depend on what the model says. If a snapshot is not
// possible, the result has only the changes of patches, and says so.
//
// [Schema] describes the result as JSON.
package report
