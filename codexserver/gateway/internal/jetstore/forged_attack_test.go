package jetstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// forged is a message that no store writes.
type forged struct {
	rest string
	head nats.Header
	data string
}

// forgeries are messages that anybody with the account of NATS can write to the stream of ann.
var forgeries = map[string]forged{
	"no headers":                  {"at.log", nil, "x"},
	"an unknown subject":          {"other.log", nats.Header{"Codexmcp-Kind": {"append"}}, "x"},
	"no name":                     {"at", nats.Header{"Codexmcp-Kind": {"put"}}, "x"},
	"a name that leads out":       {"at.==.==.etc.passwd", nats.Header{"Codexmcp-Kind": {"put"}}, "x"},
	"fewer parts than none":       {"at.big", nats.Header{"Codexmcp-Kind": {"parts"}, "Codexmcp-Parts": {"-1"}}, ""},
	"more parts than there are":   {"at.big", nats.Header{"Codexmcp-Kind": {"parts"}, "Codexmcp-Parts": {"9223372036854775807"}}, ""},
	"a part without its value":    {"at.big", nats.Header{"Codexmcp-Kind": {"part"}}, "x"},
	"a number of parts in words":  {"at.big", nats.Header{"Codexmcp-Kind": {"parts"}, "Codexmcp-Parts": {"many"}}, ""},
	"an epoch in words":           {"at.log", nats.Header{"Codexmcp-Epoch": {"many"}}, "x"},
	"a size that is not its size": {"at.other", nats.Header{"Codexmcp-Kind": {"append"}, "Nats-Msg-Size": {"9223372036854775807"}}, "x"},
}

// TestForged writes messages of others between those of a writer. The writer goes on, what it wrote
// stays, and no name is listed that is none.
func TestForged(t *testing.T) {
	server := one(t)
	for name, f := range forgeries {
		t.Run(name, func(t *testing.T) {
			js := connect(t, server)
			t.Cleanup(func() { remove(t, js) })
			s := open(t, js, jetstore.Options{Epoch: 7})
			must.OK(t, s.Append(t.Context(), "kept", 0, []byte("kept")))
			m := &nats.Msg{Subject: "codexmcp.state.ann." + f.rest, Header: f.head, Data: []byte(f.data)}
			must.Get(js.PublishMsg(t.Context(), m))(t)
			if err := s.Append(t.Context(), "kept", 4, []byte(" on")); err != nil {
				t.Errorf("the writer: %v", err)
			}
			next := open(t, js, jetstore.Options{Epoch: 8})
			if got := whole(t, next, "kept"); string(got) != "kept on" {
				t.Errorf("%q", got)
			}
			list, err := next.List(t.Context(), "")
			must.Check(t, err)
			for _, i := range list {
				if err := worker.CheckName(i.Name); err != nil || i.Size < 0 {
					t.Errorf("the list has %+v: %v", i, err)
				}
				if _, err := next.Read(t.Context(), i.Name, 0, worker.MaxData); err != nil && !errors.Is(err, worker.ErrUnavailable) {
					t.Errorf("%s: %v", i.Name, err)
				}
			}
			if err := next.Put(t.Context(), "big", make([]byte, 513<<10)); err != nil || len(whole(t, next, "big")) != 513<<10 {
				t.Errorf("a record of the next writer: %v", err)
			}
		})
	}
}

func remove(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	if _, err := jetstore.Remove(context.Background(), js, "ann"); err != nil {
		t.Error(err)
	}
}

// TestStolen lets a node that has lost its lease write on, after somebody has emptied or removed the stream and the next node has
// opened it. What the first one writes does not count.
func TestStolen(t *testing.T) {
	for name, steal := range map[string]func(t *testing.T, js jetstream.JetStream){
		"emptied": func(t *testing.T, js jetstream.JetStream) {
			must.OK(t, stream(t, js).Purge(t.Context()))
		},
		"removed": remove,
	} {
		t.Run(name, func(t *testing.T) {
			js := connect(t, one(t))
			first := open(t, js, jetstore.Options{Epoch: 7})
			must.OK(t, first.Put(t.Context(), "a", []byte("first")))
			steal(t, js)
			second := open(t, js, jetstore.Options{Epoch: 8})
			must.OK(t, second.Put(t.Context(), "a", []byte("second")))
			for _, err := range []error{
				first.Put(t.Context(), "a", []byte("late")), first.Append(t.Context(), "a", 5, []byte("late")), first.Delete(t.Context(), "a"),
				first.Put(t.Context(), "b", make([]byte, 513<<10)),
			} {
				if !errors.Is(err, worker.ErrFenced) {
					t.Errorf("the first writer: %v", err)
				}
			}
			must.Check(t, second.Append(t.Context(), "a", 6, []byte(" on")))
			third := open(t, js, jetstore.Options{Epoch: 9})
			must.Equal(t, "the list", []worker.Info{{Name: "a", Size: 9}}, must.Get(third.List(t.Context(), ""))(t))
			if got := whole(t, third, "a"); string(got) != "second on" {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestSlow lets NATS not answer. A call ends with its context and says that the store cannot be
// reached, and so do those that wait for it.
func TestSlow(t *testing.T) {
	js := connect(t, one(t))
	silent := false
	s := open(t, publisher{js, func(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
		if !silent {
			return js.PublishMsg(ctx, m, options...)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}}, jetstore.Options{Epoch: 1})
	silent = true
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var ends sync.WaitGroup
	for i := range 8 {
		ends.Go(func() {
			if err := s.Put(ctx, fmt.Sprint("n", i), []byte("x")); !errors.Is(err, worker.ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	ends.Wait()
	silent = false
	must.Check(t, s.Put(t.Context(), "after", []byte("x")))
}
