// Package report says what one turn did, for the structured result of the tools.
//
//	Begin, Ready, Event, Decided, End ──▶ Collector ──▶ Report ──▶ JSON of a bounded size
//	                                         │
//	                                gitinfo.Snapshot, before and after
//
// A [Collector] watches the turn. What changed in the folder it takes from the
// folder, by a snapshot before the turn and a look after it: what commands wrote
// counts like what patches wrote, and what the model says counts for nothing. Where
// a snapshot is too much, the changes are those of the patches, and the report says
// so.
//
// [Report.JSON] stays within its limit whatever happened, and [Schema] describes it.
package report
