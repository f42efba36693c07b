// Package jetstore keeps the state of a user in NATS JetStream, so that another machine can
// continue the user's work: it implements [worker.Store] with one stream for each user.
//
//	codexmcp.state.USER.epoch   the epoch of the latest writer
//	codexmcp.state.USER.at.NAME a log or a record: its bytes, one message for each write
//
// A record that is too large for one message has several before the one that says how many they are.
//
// Every write says which sequence number the stream must have, so writes have one order, and a
// writer notices each write that is not its own. A writer that opens the stream writes its epoch
// first. From then on a writer with a lower epoch can write nothing: the number that it expects
// is wrong, and when it reads what came since, it finds the epoch.
//
// NATS acknowledges a write when most servers of the stream have it. By default they flush it to
// their disks later: what is written survives the end of one machine, and that of all at the same
// time only with the server's option sync_interval: always.
package jetstore
