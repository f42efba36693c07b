package jetstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options configure [Open]. User and Epoch are required.
type Options struct {
	// User is the user: small letters, digits, - and _.
	User string
	// Epoch is that of the user's lease.
	Epoch uint64
	// Replicas is how many NATS servers store the stream at least: a stream that more of them store
	// stays as it is. Default: 1.
	Replicas int
}

// Store is the state of one user, for one writer. It is safe for concurrent use.
type Store struct {
	js     jetstream.JetStream
	push   nats.JetStreamContext // has the ordered consumers with which the client watches buckets
	stream jetstream.Stream
	prefix string // of all subjects, with the dot
	epoch  uint64

	slot chan struct{} // full while a call uses what is below
	index
}

var _ worker.Store = (*Store)(nil)

// streamPrefix begins the names of streams. The user follows it.
const streamPrefix = "codexmcp_state_"

const (
	// maxPart is the size of the parts of a large record, in bytes. NATS accepts messages of
	// 1 MiB by default.
	maxPart = 512 << 10
	// goneFor is how long it is kept that a name was removed, which hides nothing after that.
	goneFor = time.Hour
	// maxAttempts bounds how often a write is tried again after another writer's.
	maxAttempts = 5
	// cleanTimeout bounds the removal of parts that nothing refers to any more.
	cleanTimeout = 5 * time.Second
)

// The headers of messages.
const (
	headEpoch = "Codexmcp-Epoch"
	headKind  = "Codexmcp-Kind"
	headParts = "Codexmcp-Parts" // of kindParts: how many
)

// The kinds of messages.
const (
	kindEpoch  = "epoch"
	kindAppend = "append"
	kindPut    = "put"
	kindPart   = "part"  // of a record that is too large for one message
	kindParts  = "parts" // a put whose bytes are in the last parts
	kindGone   = "gone"
)

// Open opens the state of a user for a writer, and makes the stream if it does not exist. Writers
// with a lower epoch are fenced from then on. The error wraps [worker.ErrFenced] if there was one
// with a higher epoch, and otherwise [worker.ErrUnavailable].
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Store, error) {
	s := &Store{js: js, prefix: "codexmcp.state." + o.User + ".", epoch: o.Epoch, slot: make(chan struct{}, 1),
		index: newIndex()}
	config := jetstream.StreamConfig{
		Name: streamPrefix + o.User, Description: "codex-mcp-gateway: conversations, tasks and decisions of a user",
		Subjects: []string{s.prefix + ">"}, Storage: jetstream.FileStorage, Replicas: max(o.Replicas, 1),
		Discard:     jetstream.DiscardNew,
		AllowRollup: true, AllowMsgTTL: true, DenyDelete: true,
	}
	var before jetstream.Stream
	var err error
	if s.push, err = js.Conn().JetStream(); err == nil {
		before, err = js.Stream(ctx, config.Name)
	}
	switch {
	case err == nil:
		config.FirstSeq = before.CachedInfo().Config.FirstSeq
		config.Replicas = max(config.Replicas, before.CachedInfo().Config.Replicas)
		s.stream, err = js.UpdateStream(ctx, config)
	case errors.Is(err, jetstream.ErrStreamNotFound):
		// Of two streams with the same name the later one has higher numbers: a writer of the
		// earlier one expects none of them.
		config.FirstSeq = uint64(time.Now().UnixMilli())
		// another writer was faster
		if s.stream, err = js.CreateStream(ctx, config); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s.stream, err = js.Stream(ctx, config.Name)
		}
	}
	if err != nil {
		return nil, s.failed(err)
	}
	for range maxAttempts {
		if err = s.load(ctx); err != nil {
			return nil, err
		}
		if s.index.epoch == o.Epoch { // the worker before it had the same lease
			return s, nil
		}
		if _, err = s.publish(ctx, s.prefix+"epoch", kindEpoch, nil, rollup()); !errors.Is(err, errLate) {
			return s, err
		}
	}
	return nil, s.failed(err)
}

// Remove removes what NATS keeps of a user, and reports whether there was something. No writer may be
// left: one that opens the state later begins with what its home has.
func Remove(ctx context.Context, js jetstream.JetStream, user string) (removed bool, err error) {
	err = js.DeleteStream(ctx, streamPrefix+user)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Append implements [worker.Store].
func (s *Store) Append(ctx context.Context, name string, at int64, data []byte) error {
	if err := worker.CheckWrite(name, data, worker.MaxData); err != nil {
		return err
	}
	return s.write(ctx, func() error {
		if size := s.entries[name].size(); size != at {
			return fmt.Errorf("%w: %s has %d, not %d bytes", worker.ErrOrder, name, size, at)
		}
		_, err := s.publish(ctx, s.at(name), kindAppend, data, nil)
		return err
	})
}

// Put implements [worker.Store].
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	if err := worker.CheckWrite(name, data, worker.MaxValue); err != nil {
		return err
	}
	return s.write(ctx, func() error {
		if len(data) <= maxPart {
			_, err := s.publish(ctx, s.at(name), kindPut, data, rollup())
			return err
		}
		parts := slices.Collect(slices.Chunk(data, maxPart))
		var first uint64
		for _, part := range parts { // without the last message they are not there
			seq, err := s.publish(ctx, s.at(name), kindPart, part, nil)
			if err != nil {
				return err
			}
			first = cmp.Or(first, seq)
		}
		_, err := s.publish(ctx, s.at(name), kindParts, nil, nats.Header{headParts: {strconv.Itoa(len(parts))}})
		if err == nil {
			s.clean(ctx, name, first)
		}
		return err
	})
}

// clean removes the messages of a name before a sequence number. What it leaves is only in the way.
func (s *Store) clean(ctx context.Context, name string, before uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	_ = s.stream.Purge(ctx, jetstream.WithPurgeSubject(s.at(name)), jetstream.WithPurgeSequence(before))
}

// Delete implements [worker.Store].
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := worker.CheckName(name); err != nil {
		return err
	}
	return s.write(ctx, func() error {
		if _, ok := s.entries[name]; !ok {
			return nil
		}
		_, err := s.publish(ctx, s.at(name), kindGone, nil, rollup(), jetstream.WithMsgTTL(goneFor))
		return err
	})
}

// Read implements [worker.Store].
func (s *Store) Read(ctx context.Context, name string, at int64, most int) ([]byte, error) {
	if err := worker.CheckName(name); err != nil {
		return nil, err
	}
	var data []byte
	err := s.use(ctx, func() error {
		e, ok := s.entries[name]
		if !ok {
			return fmt.Errorf("%s: %w", name, worker.ErrNotFound)
		}
		at = min(max(at, 0), e.size())
		most := min(int64(max(min(most, worker.MaxData), 0)), e.size()-at)
		var err error
		data, err = s.bytes(ctx, name, e, at, most)
		return err
	})
	return data, err
}

// List implements [worker.Store].
func (s *Store) List(ctx context.Context, after string) ([]worker.Info, error) {
	var all []worker.Info
	err := s.use(ctx, func() error {
		for name, e := range s.entries {
			if name > after {
				all = append(all, worker.Info{Name: name, Size: e.size()})
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b worker.Info) int { return strings.Compare(a.Name, b.Name) })
	return all[:min(len(all), worker.MaxList)], err
}

// use calls f while no other call uses the index, which is as new as the stream.
func (s *Store) use(ctx context.Context, f func() error) error {
	select {
	case s.slot <- struct{}{}:
	case <-ctx.Done():
		return s.failed(context.Cause(ctx))
	}
	defer func() { <-s.slot }()
	if err := ctx.Err(); err != nil {
		return s.failed(err)
	}
	if s.unsure {
		if err := s.load(ctx); err != nil && !errors.Is(err, worker.ErrFenced) {
			return err
		}
	}
	return f()
}

// write calls f, and again if another writer has written meanwhile.
func (s *Store) write(ctx context.Context, f func() error) error {
	return s.use(ctx, func() (err error) {
		for range maxAttempts {
			if s.index.epoch > s.epoch {
				return worker.ErrFenced
			}
			if err = f(); !errors.Is(err, errLate) {
				return err
			}
			if err := s.load(ctx); err != nil {
				return err
			}
		}
		return s.failed(err)
	})
}

// errLate means that the stream has messages that the index lacks.
var errLate = errors.New("another writer has written")

func rollup() nats.Header { return nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}} }

// publish writes a message as the next one of the stream and adds it to the index. If it fails,
// the message may have been written.
func (s *Store) publish(
	ctx context.Context, subject, kind string, data []byte, head nats.Header, options ...jetstream.PublishOpt,
) (uint64, error) {
	if head == nil {
		head = nats.Header{}
	}
	head.Set(headEpoch, strconv.FormatUint(s.epoch, 10))
	head.Set(headKind, kind)
	m := &nats.Msg{Subject: subject, Header: head, Data: data}
	seq, err := s.send(ctx, m, append(options, jetstream.WithExpectLastSequence(s.last))...)
	switch {
	case errors.Is(err, errLate):
		s.unsure = true
		return 0, errLate
	case err != nil:
		s.unsure = true
		return 0, s.failed(err)
	}
	s.add(strings.TrimPrefix(subject, s.prefix), head, message{seq: seq, size: int64(len(data))})
	return seq, nil
}

// ackTimeout is how long a message may have no answer before it is sent again. The answer is lost
// if the server dies that leads the stream.
const ackTimeout = 2 * time.Second

// send sends a message, and again while no answer comes, and returns its sequence number. NATS
// refuses the second one if it has written the first, whose id tells that it is the same.
func (s *Store) send(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (uint64, error) {
	id := rand.Text()
	for i := 1; ; i++ {
		attempt, cancel := context.WithTimeout(ctx, ackTimeout)
		ack, err := s.js.PublishMsg(attempt, m, append(options, jetstream.WithMsgID(id))...)
		var answer *jetstream.APIError
		errors.As(err, &answer)
		early := errors.Is(err, jetstream.ErrNoStreamResponse) || answer != nil && answer.ErrorCode == codeInProcess
		if early {
			<-attempt.Done()
		}
		cancel()
		switch {
		case err == nil:
			return ack.Sequence, nil
		case answer != nil && (answer.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
			answer.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant):
			if i > 1 {
				if first, err := s.stream.GetMsg(ctx, s.last+1); err == nil &&
					first.Header.Get(jetstream.MsgIDHeader) == id {
					return first.Sequence, nil
				}
			}
			return 0, errLate
		case !early && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || i == maxAttempts:
			return 0, err
		}
	}
}

// codeInProcess is the code of NATS for a message whose id it has seen, and not yet written.
const codeInProcess = 10158

// The codes of NATS for a stream, an account or a server without room.
const (
	codeNoResources = 10023
	codeNoStorage   = 10047
	codeStoreFailed = 10077
)

// failed returns an error of NATS as one of the store.
func (s *Store) failed(err error) error {
	answer, ok := errors.AsType[*jetstream.APIError](err)
	if ok && (answer.ErrorCode == codeNoResources || answer.ErrorCode == codeNoStorage ||
		answer.ErrorCode == codeStoreFailed && strings.Contains(answer.Description, "maximum")) {
		return fmt.Errorf("%w: %w", worker.ErrFull, err)
	}
	return fmt.Errorf("%w: %w", worker.ErrUnavailable, err)
}

// at returns the subject of a name.
func (s *Store) at(name string) string { return s.prefix + "at." + token(name) }

// A name has no =, and a component of a subject no dot.
func token(name string) string {
	return strings.NewReplacer(".", "=", "/", ".").Replace(name)
}

func nameOf(token string) string {
	return strings.NewReplacer("=", ".", ".", "/").Replace(token)
}
