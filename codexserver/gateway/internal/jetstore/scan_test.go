package jetstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats.go/jetstream"
)

// TestLate checks that a state is read whole, or not at all, although the server that sends the messages of a stream does not have
// the last ones yet, or they are gone. Otherwise it could lack the epoch of a later writer.
func TestLate(t *testing.T) {
	for name, tt := range map[string]struct {
		late int // how often the leader has a message that nobody sends
		want error
	}{"gone": {0, nil}, "late": {2, nil}, "too late": {1 << 20, worker.ErrUnavailable}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := connect(t, one(t))
			before := open(t, js, jetstore.Options{Epoch: 1})
			must.OK(t, before.Append(t.Context(), "log", 0, []byte("x")))
			s, err := jetstore.Open(t.Context(), behind{js, &tt.late}, jetstore.Options{User: "ann", Epoch: 1})
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if tt.want == nil && string(whole(t, s, "log")) != "x" {
				t.Error("the log is not whole")
			}
		})
	}
}

// behind is JetStream whose streams have one message more than anybody sends.
type behind struct {
	jetstream.JetStream
	late *int
}

func (b behind) UpdateStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := b.JetStream.UpdateStream(ctx, c)
	return behindStream{s, b.late}, err
}

type behindStream struct {
	jetstream.Stream
	late *int
}

func (s behindStream) Info(ctx context.Context, o ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	info, err := s.Stream.Info(ctx, o...)
	info.State.LastSeq++
	return info, err
}

func (s behindStream) GetMsg(ctx context.Context, seq uint64, o ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	if *s.late--; *s.late >= 0 && len(o) > 0 {
		return &jetstream.RawStreamMsg{}, nil
	}
	return s.Stream.GetMsg(ctx, seq, o...)
}
