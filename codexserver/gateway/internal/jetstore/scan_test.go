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

// TestDelivery checks that a state is read whole although NATS sends messages of a stream twice,
// or they are lost on their way, or the server that sends them does not have the last ones yet.
func TestDelivery(t *testing.T) {
	for name, meddle := range map[string]func(consumer int, batch []jetstream.Msg) []jetstream.Msg{
		"twice": func(_ int, batch []jetstream.Msg) []jetstream.Msg {
			return slices.Concat(batch[:len(batch)/2], batch[len(batch)/3:])
		},
		"lost": func(consumer int, batch []jetstream.Msg) []jetstream.Msg {
			if consumer%3 > 0 {
				return batch
			}
			return slices.Concat(batch[:len(batch)/3], batch[len(batch)/2:])
		},
		"late": func(consumer int, batch []jetstream.Msg) []jetstream.Msg {
			if consumer%3 > 0 {
				return batch
			}
			return batch[:max(len(batch)-2, 0)]
		},
	} {
		t.Run(name, func(t *testing.T) {
			js := connect(t, one(t))
			before := open(t, js, jetstore.Options{User: "ann", Epoch: 1})
			var want []byte
			for i := range 20 {
				line := fmt.Appendf(nil, "line %d\n", i)
				if err := before.Append(t.Context(), "log", int64(len(want)), line); err != nil {
					t.Fatal(err)
				}
				want = append(want, line...)
			}
			after := open(t, &meddler{JetStream: js, meddle: meddle}, jetstore.Options{User: "ann", Epoch: 2})
			if diff := cmp.Diff(string(want), string(whole(t, after, "log"))); diff != "" {
				t.Errorf("the log (-want +got):\n%s", diff)
			}
			if err := before.Append(t.Context(), "log", int64(len(want)), nil); !errors.Is(err, worker.ErrFenced) {
				t.Errorf("the writer before: %v", err)
			}
		})
	}
}

// TestDeliveryFails checks that a state is not taken for whole whose messages do not arrive.
func TestDeliveryFails(t *testing.T) {
	for name, meddle := range map[string]func(int, []jetstream.Msg) []jetstream.Msg{
		"lost": func(_ int, batch []jetstream.Msg) []jetstream.Msg { return batch[min(len(batch), 1):] },
		"late": func(_ int, batch []jetstream.Msg) []jetstream.Msg { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := connect(t, one(t))
			open(t, js, jetstore.Options{User: "ann", Epoch: 2})
			// It would not know that it is fenced.
			if _, err := jetstore.Open(t.Context(), &meddler{JetStream: js, meddle: meddle}, jetstore.Options{User: "ann", Epoch: 1}); !errors.Is(err, worker.ErrUnavailable) {
				t.Errorf("it opens: %v", err)
			}
		})
	}
}

// meddler is JetStream whose consumers deliver what meddle returns of what they have.
type meddler struct {
	jetstream.JetStream
	meddle    func(consumer int, batch []jetstream.Msg) []jetstream.Msg
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
	return meddledConsumer{consumer, s.m, s.m.consumers - 1}, err
}

type meddledConsumer struct {
	jetstream.Consumer
	m *meddler
	n int
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
	return meddledBatch{batch, c.m.meddle(c.n, all)}, nil
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
