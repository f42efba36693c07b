package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
)

// move gives the users who run here to other nodes, as far as nothing is interrupted that could not go on
// there. It does so in the way of a node that dies: the worker is killed, so that its turns have no end,
// and the next one asks their open questions again.
func (n *Node) move(ctx context.Context, running []string) {
	here := slices.DeleteFunc(n.holder.Users(), func(user string) bool { return !slices.Contains(running, user) })
	if len(here) == 0 {
		return
	}
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	others, err := n.o.Nodes.All(looking)
	cancel()
	if err != nil {
		n.o.Logger.Warn("the other nodes are not known", "error", err)
		return
	}
	var moving sync.WaitGroup
	defer moving.Wait()
	for _, user := range here {
		moving.Go(func() {
			may := func() bool { return n.movable(ctx, user) }
			switch {
			case n.o.Pool.Activity(ctx, user) == worker.Idle:
				n.o.Pool.EndIdle(user) // sweep releases the lease then
			case !may() || len(placement.Pick(others, user)) == 0: // this node drains, so it is none of them
			default:
				if err := n.holder.HandOver(ctx, user, may); err != nil {
					n.o.Logger.Warn("a user could not be given to another node", "principal", user, "error", err)
				}
			}
		})
	}
}

// lookTimeout bounds how long move waits for NATS, which may never answer.
const lookTimeout = 2 * time.Second

// movable reports whether the worker of a user may be interrupted for another node. Sessions, which end with
// it, alone keep a user here until the process ends.
func (n *Node) movable(ctx context.Context, user string) bool {
	switch n.o.Pool.Activity(ctx, user) {
	case worker.Waiting, worker.Idle:
		return true
	case worker.Connected:
		return n.ending.Load()
	}
	return false
}

// settled reports whether no worker does what must not be interrupted.
func (n *Node) settled(ctx context.Context) bool {
	return !slices.ContainsFunc(n.o.Pool.Running(), func(user string) bool { return n.o.Pool.Activity(ctx, user) == worker.Busy })
}
