package jetstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// index says where in the stream the bytes of each name are.
type index struct {
	epoch   uint64 // the highest of a writer
	last    uint64 // the sequence number up to which the index has all messages
	unsure  bool   // there may be later ones
	entries map[string]entry
	pending map[string][]message // parts, by name
}

// message is one in the stream with bytes of a name.
type message struct {
	seq  uint64
	size int64
	end  int64 // where its bytes end in the entry; 0 while it is pending
}

// entry is a log or a record: the messages that have its bytes.
type entry []message

func newIndex() index { return index{entries: map[string]entry{}, pending: map[string][]message{}} }

// size returns how many bytes an entry has. One that is not there has none.
func (e entry) size() int64 {
	if len(e) == 0 {
		return 0
	}
	return e[len(e)-1].end
}

// with returns the entry with the bytes of further messages.
func (e entry) with(all ...message) entry {
	for _, m := range all {
		m.end = e.size() + m.size
		e = append(e, m)
	}
	return e
}

// add adds a message of the stream, whose subject has a rest after the prefix.
func (x *index) add(rest string, head nats.Header, m message) {
	x.last = max(x.last, m.seq)
	if n, err := strconv.ParseUint(head.Get(headEpoch), 10, 64); err == nil {
		x.epoch = max(x.epoch, n)
	}
	room, tokens, _ := strings.Cut(rest, ".")
	name := nameOf(tokens)
	if room != "at" || worker.CheckName(name) != nil {
		return // of the epoch, or not of a store
	}
	parts := x.pending[name]
	switch head.Get(headKind) {
	case kindPart:
		x.pending[name] = append(parts, m)
		return
	case kindAppend:
		x.entries[name] = x.entries[name].with(m)
		return
	case kindGone:
		delete(x.entries, name)
	case kindPut:
		x.entries[name] = entry{}.with(m)
	case kindParts:
		if n, err := strconv.Atoi(head.Get(headParts)); err != nil || n < 0 || n > len(parts) {
			parts = nil
		} else {
			parts = parts[len(parts)-n:]
		}
		x.entries[name] = entry{}.with(parts...)
	default:
		return
	}
	delete(x.pending, name)
}

// load reads what the stream has and the index lacks. The error wraps [worker.ErrFenced] if there
// is a writer with a higher epoch.
func (s *Store) load(ctx context.Context) error {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return s.failed(err)
	}
	deadline := time.Now().Add(findTimeout)
	for {
		err = s.scan(ctx, s.prefix+">", s.last+1, func(m *nats.Msg, seq uint64) error {
			sizes := m.Header["Nats-Msg-Size"] // that of NATS is the last one
			if len(sizes) == 0 {
				return fmt.Errorf("message %d of the stream has no size", seq)
			}
			size, err := strconv.ParseInt(sizes[len(sizes)-1], 10, 64)
			if err != nil || size < 0 {
				return fmt.Errorf("message %d of the stream has a wrong size", seq)
			}
			s.add(strings.TrimPrefix(m.Subject, s.prefix), m.Header, message{seq: seq, size: size})
			return nil
		}, nats.HeadersOnly())
		if err != nil {
			return s.failed(err)
		}
		if s.last >= info.State.LastSeq {
			break
		}
		// The last messages are gone, or the server that read the stream did not have them yet.
		// The leader of the stream has them.
		_, err := s.stream.GetMsg(ctx, s.last+1, jetstream.WithGetMsgSubject(s.prefix+">"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			s.last = info.State.LastSeq // it counts messages that are gone
			break
		}
		if err == nil && time.Now().After(deadline) {
			err = fmt.Errorf("message %d of the stream cannot be read yet", info.State.LastSeq)
		}
		if err != nil {
			return s.failed(err)
		}
		select {
		case <-time.After(findInterval):
		case <-ctx.Done(): // the next scan fails
		}
	}
	s.unsure = false
	if s.index.epoch > s.epoch {
		return worker.ErrFenced
	}
	return nil
}

const (
	// findTimeout bounds how long messages may not be there that the stream has, and findInterval is between two looks for them.
	findTimeout  = 2 * time.Second
	findInterval = 20 * time.Millisecond
)

// scan calls f for the messages of a subject from a sequence number on that the stream has now, in their order, and once for
// each. An ordered consumer of the client notices that messages are lost on their way, or come twice, and has them sent again.
// scan may miss the last ones if those are lost.
func (s *Store) scan(
	ctx context.Context, subject string, from uint64, f func(m *nats.Msg, seq uint64) error, options ...nats.SubOpt,
) error {
	options = append(options, nats.OrderedConsumer(), nats.BindStream(s.stream.CachedInfo().Config.Name),
		nats.StartSequence(from), nats.Context(ctx))
	sub, err := s.push.SubscribeSync(subject, options...)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // else the consumer ends by itself
	left, err := sub.InitialConsumerPending()
	for err == nil && left > 0 {
		var m *nats.Msg
		var about *nats.MsgMetadata
		if m, err = sub.NextMsg(findTimeout); err == nil {
			about, err = m.Metadata()
		}
		if err == nil {
			left, err = about.NumPending, f(m, about.Sequence.Stream)
		}
	}
	if errors.Is(err, nats.ErrTimeout) {
		if now, failed := sub.ConsumerInfo(); failed == nil && now.NumPending == 0 { // some were removed meanwhile
			return nil
		}
	}
	return cmp.Or(ctx.Err(), err)
}

// bytes reads size bytes of a name, which has as many, from at on.
func (s *Store) bytes(ctx context.Context, name string, e entry, at, size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	var all []message
	for _, m := range e {
		if m.end > at && m.end-m.size < at+size {
			all = append(all, m)
		}
	}
	var data []byte
	skip := at - all[0].end + all[0].size
	if len(all) <= 2 {
		for _, m := range all {
			got, err := s.stream.GetMsg(ctx, m.seq)
			if err != nil {
				s.unsure = true
				return nil, s.failed(err)
			}
			data = append(data, got.Data...)
		}
	} else {
		err := s.scan(ctx, s.at(name), all[0].seq, func(m *nats.Msg, seq uint64) error {
			if len(all) > 0 && all[0].seq == seq {
				data, all = append(data, m.Data...), all[1:]
			}
			return nil
		})
		if err == nil && len(all) > 0 {
			err = fmt.Errorf("message %d of the stream is missing", all[0].seq)
		}
		if err != nil {
			s.unsure = true
			return nil, s.failed(err)
		}
	}
	if int64(len(data)) < skip+size {
		s.unsure = true
		return nil, s.failed(errors.New("the stream has fewer bytes than its messages said"))
	}
	return data[skip : skip+size], nil
}
