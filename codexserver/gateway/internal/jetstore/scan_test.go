package jetstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// TestDelivery checks that a state is read whole, or not at all, although NATS sends messages of a stream twice, or they are lost
// on their way, or the server that sends them does not have the last ones yet.
func TestDelivery(t *testing.T) {
	sometimes := func(consumer int) bool { return consumer%3 == 0 }
	always := func(int) bool { return true }
	for name, tt := range map[string]struct {
		when   func(consumer int) bool
		meddle func(batch []jetstream.Msg) []jetstream.Msg
		fails  bool
	}{
		"twice":       {always, func(all []jetstream.Msg) []jetstream.Msg { return slices.Concat(all[:len(all)/2], all[len(all)/3:]) }, false},
		"lost":        {sometimes, func(all []jetstream.Msg) []jetstream.Msg { return slices.Concat(all[:len(all)/3], all[len(all)/2:]) }, false},
		"late":        {sometimes, func(all []jetstream.Msg) []jetstream.Msg { return all[:max(len(all)-2, 0)] }, false},
		"always lost": {always, func(all []jetstream.Msg) []jetstream.Msg { return all[min(len(all), 1):] }, true},
		"too late":    {always, func([]jetstream.Msg) []jetstream.Msg { return nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := connect(t, one(t))
			before := open(t, js, jetstore.Options{Epoch: 1})
			var want []byte
			for i := range 20 {
				line := fmt.Appendf(nil, "line %d\n", i)
				if err := before.Append(t.Context(), "log", int64(len(want)), line); err != nil {
					t.Fatal(err)
				}
				want = append(want, line...)
			}
			after, err := jetstore.Open(t.Context(), &meddler{JetStream: js, when: tt.when, meddle: tt.meddle}, jetstore.Options{User: "ann", Epoch: 2})
			if tt.fails { // else it could lack the epoch of a later writer
				if !errors.Is(err, worker.ErrUnavailable) {
					t.Errorf("it opens: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(whole(t, after, "log"))); diff != "" {
				t.Errorf("the log (-want +got):\n%s", diff)
			}
			if err := before.Append(t.Context(), "log", int64(len(want)), nil); !errors.Is(err, worker.ErrFenced) {
				t.Errorf("the writer before: %v", err)
			}
		})
	}
}

// meddler is JetStream some of whose consumers deliver what meddle returns of what they have.
type meddler struct {
	jetstream.JetStream
	when      func(consumer int) bool
	meddle    func(batch []jetstream.Msg) []jetstream.Msg
	consumers int
}

// UpdateStream implements [jetstream.JetStream].
func (m *meddler) UpdateStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := m.JetStream.UpdateStream(ctx, c)
	return meddledStream{s, m}, err
}

type meddledStream struct {
	jetstream.Stream
	m *meddler
}

// CreateConsumer implements [jetstream.Stream].
func (s meddledStream) CreateConsumer(ctx context.Context, c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	consumer, err := s.Stream.CreateConsumer(ctx, c)
	s.m.consumers++
	if !s.m.when(s.m.consumers - 1) {
		return consumer, err
	}
	return meddledConsumer{consumer, s.m}, err
}

type meddledConsumer struct {
	jetstream.Consumer
	m *meddler
}

// FetchNoWait implements [jetstream.Consumer].
func (c meddledConsumer) FetchNoWait(most int) (jetstream.MessageBatch, error) {
	batch, err := c.Consumer.FetchNoWait(most)
	if err != nil {
		return nil, err
	}
	var all []jetstream.Msg
	for m := range batch.Messages() {
		all = append(all, m)
	}
	return meddledBatch{batch, c.m.meddle(all)}, nil
}

type meddledBatch struct {
	jetstream.MessageBatch
	all []jetstream.Msg
}

// Messages implements [jetstream.MessageBatch].
func (b meddledBatch) Messages() <-chan jetstream.Msg {
	all := make(chan jetstream.Msg, len(b.all))
	for _, m := range b.all {
		all <- m
	}
	close(all)
	return all
}
