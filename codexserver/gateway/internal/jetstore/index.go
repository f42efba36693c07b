package jetstore

import (
	"context"
	"errors"
	"fmt"
	"sort"
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
	entries map[string]*entry
	pending map[string][]message // parts, by name
}

// message is one in the stream with bytes of a name.
type message struct {
	seq  uint64
	size int64
	end  int64 // where its bytes end in the entry; 0 while it is pending
}

// entry is a log or a record.
type entry struct{ all []message }

func newIndex() index { return index{entries: map[string]*entry{}, pending: map[string][]message{}} }

// size returns how many bytes an entry has. One that is not there has none.
func (e *entry) size() int64 {
	if e == nil || len(e.all) == 0 {
		return 0
	}
	return e.all[len(e.all)-1].end
}

func (e *entry) add(all ...message) {
	for _, m := range all {
		m.end = e.size() + m.size
		e.all = append(e.all, m)
	}
}

// between returns the messages that have the bytes from a to b, and where they begin in the entry.
func (e *entry) between(a, b int64) (all []message, begin int64) {
	first := sort.Search(len(e.all), func(i int) bool { return e.all[i].end > a })
	if a == b {
		return nil, a
	}
	last := sort.Search(len(e.all), func(i int) bool { return e.all[i].end >= b })
	return e.all[first : last+1], e.all[first].end - e.all[first].size
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
	case kindGone:
		delete(x.entries, name)
		delete(x.pending, name)
	case kindAppend:
		if x.entries[name] == nil {
			x.entries[name] = &entry{}
		}
		x.entries[name].add(m)
	case kindPut:
		x.entries[name] = &entry{}
		x.entries[name].add(m)
		delete(x.pending, name)
	case kindParts:
		n, err := strconv.Atoi(head.Get(headParts))
		x.entries[name] = &entry{}
		if err == nil && 0 <= n && n <= len(parts) {
			x.entries[name].add(parts[len(parts)-n:]...)
		}
		delete(x.pending, name)
	}
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
		err = s.scan(ctx, jetstream.ConsumerConfig{HeadersOnly: true, OptStartSeq: s.last + 1}, func(m jetstream.Msg, seq uint64) error {
			sizes := m.Headers()["Nats-Msg-Size"] // that of NATS is the last one
			if len(sizes) == 0 {
				return fmt.Errorf("message %d of the stream has no size", seq)
			}
			size, err := strconv.ParseInt(sizes[len(sizes)-1], 10, 64)
			if err != nil || size < 0 {
				return fmt.Errorf("message %d of the stream has a wrong size", seq)
			}
			s.add(strings.TrimPrefix(m.Subject(), s.prefix), m.Headers(), message{seq: seq, size: size})
			return nil
		})
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
		pause(ctx, findInterval)
	}
	s.unsure = false
	if s.index.epoch > s.epoch {
		return worker.ErrFenced
	}
	return nil
}

// maxFetch is how many messages are fetched at a time.
const maxFetch = 256

// errGap means that messages of a consumer were lost on their way.
var errGap = errors.New("messages of NATS were lost")

// scan calls f for the messages from a sequence number on that the stream has now, in their order,
// and once for each.
func (s *Store) scan(ctx context.Context, config jetstream.ConsumerConfig, f func(m jetstream.Msg, seq uint64) error) (err error) {
	config.DeliverPolicy, config.AckPolicy, config.MemoryStorage, config.InactiveThreshold = jetstream.DeliverByStartSequencePolicy, jetstream.AckNonePolicy, true, scanTimeout
	for range maxAttempts {
		if err = s.scanOnce(ctx, &config, f); !errors.Is(err, errGap) {
			return err
		}
	}
	return err
}

// scanOnce scans with one consumer. NATS does not know which of its messages arrive, and sends some
// of them again if another server takes over the consumer. config.OptStartSeq follows f.
func (s *Store) scanOnce(ctx context.Context, config *jetstream.ConsumerConfig, f func(m jetstream.Msg, seq uint64) error) error {
	c, err := s.stream.CreateConsumer(ctx, *config)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		_ = s.stream.DeleteConsumer(ctx, c.CachedInfo().Name) // else it ends by itself
	}()
	deadline, delivered := time.Now().Add(findTimeout), uint64(0)
	for left := c.CachedInfo().NumPending; left > 0; {
		batch, err := c.FetchNoWait(int(min(left, maxFetch)))
		if err != nil {
			return err
		}
		got := false
		for m := range batch.Messages() {
			about, err := m.Metadata()
			if err != nil {
				return err
			}
			got, left = true, about.NumPending
			seq := about.Sequence.Stream
			if seq < config.OptStartSeq {
				continue
			}
			if delivered++; about.Sequence.Consumer != delivered {
				return errGap
			}
			if err := f(m, seq); err != nil {
				return err
			}
			config.OptStartSeq = seq + 1
		}
		if !got && ctx.Err() == nil && errors.Is(batch.Error(), nats.ErrNoResponders) && time.Now().Before(deadline) {
			pause(ctx, findInterval)
			continue
		}
		if err := errors.Join(batch.Error(), ctx.Err()); err != nil {
			return err
		}
		if !got { // some were removed meanwhile
			info, err := c.Info(ctx)
			if err != nil {
				return err
			}
			left = info.NumPending
		}
	}
	return nil
}

// In a cluster the server with a new consumer says that it is there before all others know where:
// a request for its messages may find nobody at first.
const (
	findTimeout  = 2 * time.Second
	findInterval = 20 * time.Millisecond
)

// scanTimeout is how long NATS keeps the consumer of a scan whose process has ended.
const scanTimeout = 30 * time.Second

// bytes reads size bytes of a name, which has as many, from at on.
func (s *Store) bytes(ctx context.Context, name string, e *entry, at, size int64) ([]byte, error) {
	var data []byte
	all, begin := e.between(at, at+size)
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
		err := s.scan(ctx, jetstream.ConsumerConfig{FilterSubject: s.at(name), OptStartSeq: all[0].seq}, func(m jetstream.Msg, seq uint64) error {
			if len(all) > 0 && all[0].seq == seq {
				data, all = append(data, m.Data()...), all[1:]
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
	skip := at - begin
	if int64(len(data)) < skip+size {
		s.unsure = true
		return nil, s.failed(errors.New("the stream has fewer bytes than its messages said"))
	}
	return data[skip : skip+size], nil
}
