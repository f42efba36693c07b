// Package record has the lines of the record: who decided what, what ran because of it, and how that
// ended. A line is one JSON object:
//
//	decided  a question with its decision, or what the engine refused without a question
//	begins   a command, a patch or a tool is about to run
//	ends     how that ended
//
// Lines about one decision have its id. What runs without a question has none. Outputs and the
// arguments of tools are not in the record.
//
//	approve: decisions ─┐
//	                    ├──▶ Line ──▶ Record ──▶ Log: a file of whole lines, for any number of processes
//	host: events ───────┘
package record
