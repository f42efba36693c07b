package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/nats-io/nats.go"
)

// Drain makes the node with an id take no more users, and give away those without running work.
func Drain(ctx context.Context, conn *nats.Conn, id string) error {
	_, err := conn.RequestWithContext(ctx, drainSubject(id), nil)
	return err
}

func drainSubject(id string) string { return "codexmcp.node." + id + ".drain" }

// drain handles the request of [Drain].
func (n *Node) drain(m *nats.Msg) {
	n.draining.Store(true)
	n.o.Logger.Info("the node drains")
	_ = n.holder.Publish(context.Background()) // else the next renewal says it
	_ = m.Respond(nil)                         // the operator's program has a timeout
}

const (
	// drainInterval is how often a node that ends looks for users that it can give away.
	drainInterval = 200 * time.Millisecond
	// settledLooks is how many looks in a row must find that nothing runs: the answer of a call that has ended is on its way.
	settledLooks = 3
)

// Drain waits until nothing runs that must not be interrupted. If other nodes exist, users whose turns
// only wait for answers go to those at once, others when their running work has ended. A user who is here
// can work meanwhile.
func (n *Node) Drain(ctx context.Context) error {
	n.draining.Store(true)
	n.ending.Store(true)
	_ = n.holder.Publish(ctx) // else the next renewal says it
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for looks := 0; ; {
		n.sweep(ctx)
		if looks++; !n.settled(ctx) {
			looks = 0
		}
		if looks == settledLooks {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// move gives the users who run here to other nodes, as far as nothing is interrupted that could not go on
// there. It does so in the way of a node that dies: the worker is killed, so that its turns have no end,
// and the next one asks their open questions again.
func (n *Node) move(ctx context.Context) {
	users := n.holder.Users()
	if len(users) == 0 {
		return
	}
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	others, err := n.o.Leases.Nodes.All(looking)
	cancel()
	if err != nil {
		n.o.Logger.Warn("the other nodes are not known", "error", err)
		return
	}
	var moving sync.WaitGroup
	defer moving.Wait()
	for _, user := range users {
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
	return !slices.ContainsFunc(n.o.Pool.Running(),
		func(user string) bool { return n.o.Pool.Activity(ctx, user) == worker.Busy })
}
