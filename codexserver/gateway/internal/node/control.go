package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// takeRequest asks a node to take the lease of a user.
type takeRequest struct {
	User string `json:"user"`
}

// takeAnswer is the answer: the lease that holds then, or why the node does not take it.
type takeAnswer struct {
	Lease lease.Lease `json:"lease,omitzero"`
	Error string      `json:"error,omitzero"`
}

const (
	// takeTimeout bounds how long a node takes for a lease.
	takeTimeout = 5 * time.Second
	// maxTaking bounds the leases that a node is taking at a time.
	maxTaking = 256
)

// ErrRefused means that a node does not take a user.
var ErrRefused = errors.New("the node does not take the user")

// Take asks the node with an id to take the lease of a user, and returns the lease that holds
// then, which may be that of another node.
func Take(ctx context.Context, conn *nats.Conn, id, user string) (lease.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, takeTimeout+time.Second)
	defer cancel()
	text, err := json.Marshal(takeRequest{user})
	if err != nil {
		return lease.Lease{}, err
	}
	m, err := conn.RequestWithContext(ctx, takeSubject(id), text)
	if err != nil {
		return lease.Lease{}, err
	}
	var answer takeAnswer
	if err := json.Unmarshal(m.Data, &answer, json.RejectUnknownMembers(true)); err != nil {
		return lease.Lease{}, fmt.Errorf("the answer of the node: %w", err)
	}
	if answer.Error != "" {
		return lease.Lease{}, fmt.Errorf("%w: %s", ErrRefused, answer.Error)
	}
	answer.Lease.User = user
	return answer.Lease, nil
}

// take handles the question of [Take].
func (n *Node) take(m *nats.Msg) {
	select {
	case n.taking <- struct{}{}:
	default:
		n.answer(m, takeAnswer{Error: "it takes too many users at the same time"})
		return
	}
	n.running.Go(func() {
		defer func() { <-n.taking }()
		var r takeRequest
		if err := json.Unmarshal(m.Data, &r, json.RejectUnknownMembers(true)); err != nil {
			n.answer(m, takeAnswer{Error: "the request is invalid"})
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), takeTimeout)
		defer cancel()
		got, err := n.takeLease(ctx, r.User)
		if err != nil {
			n.answer(m, takeAnswer{Error: err.Error()})
			return
		}
		n.answer(m, takeAnswer{Lease: got})
	})
}

func (n *Node) takeLease(ctx context.Context, user string) (lease.Lease, error) {
	switch {
	case !n.fits(user):
		return lease.Lease{}, errors.New("the user does not belong on it")
	case n.draining.Load() && n.holder.Epoch(user) == 0:
		return lease.Lease{}, errors.New("it drains")
	}
	return n.holder.Take(ctx, user)
}

func (n *Node) answer(m *nats.Msg, a takeAnswer) {
	text, err := json.Marshal(a)
	if err == nil {
		err = m.Respond(text)
	}
	if err != nil {
		n.o.Logger.Warn("a front gets no answer", "error", err)
	}
}

// Drain makes the node with an id take no more users, and give away those without running work.
func Drain(ctx context.Context, conn *nats.Conn, id string) error {
	_, err := conn.RequestWithContext(ctx, drainSubject(id), nil)
	return err
}

// drain handles the request of [Drain].
func (n *Node) drain(m *nats.Msg) {
	n.draining.Store(true)
	n.o.Logger.Info("the node drains")
	n.publish(context.Background())
	_ = m.Respond(nil) // the operator's program has a timeout
}
