// Package lease decides which node runs the worker of a user, with a bucket of NATS JetStream:
// its keys are the users, and only one node can make a key.
//
//	front ── [Leases.Get] ──▶ bucket ◀── [Holder.Take], renewed at a third of the time ── node
//
// The server removes a key that was not renewed for the bucket's TTL. A node that could not renew
// calls [HolderOptions].Lost after two thirds of that time, counted from before the renewal was sent,
// so its worker ends before another node can take the lease. [HolderOptions].Renewed tells a
// fence the same time, in case the process of the node is stopped. The clock of a node goes on while
// the machine is suspended.
//
// This assumes that Lost needs less than a third of the time, and that the clocks of NATS
// servers differ by less than what remains of it: after a change of the leader, another clock
// measures the age of a key.
//
// Every lease has an epoch, which is larger than that of all leases before it. A front puts the
// epoch that it knows into each request, and a node refuses a request with any other epoch than
// its own ([Holder.Hold]).
package lease
