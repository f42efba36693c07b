package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Bucket configures a bucket of keys and values.
type Bucket struct {
	// Name is its name, and About what it is for.
	Name, About string
	// TTL is how long a key lasts that is not written again. 0 means no limit.
	TTL time.Duration
	// Replicas is how many servers of a cluster store it. 0 means as many as store it already, and for
	// a new one 3 in a cluster, otherwise 1. [Broker.Open] sets it to how many it is then.
	Replicas int
	// MaxValue bounds a value, in bytes.
	MaxValue int32
}

// errOther means that a bucket has another configuration.
var errOther = errors.New("another configuration")

// Open opens a bucket, and makes it if it does not exist. While NATS cannot do that, it tries
// again until ctx ends: a cluster that starts has no leader, or not enough servers, at first. It
// fails if the bucket has another TTL, or other replicas. The server of this process keeps one with a TTL in memory: when
// it starts, all that is in it is out of date.
func (b *Broker) Open(ctx context.Context, o *Bucket) (jetstream.KeyValue, error) {
	for {
		kv, err := b.open(ctx, o)
		if err == nil || errors.Is(err, errOther) || ctx.Err() != nil {
			return kv, err
		}
		select {
		case <-time.After(reconnectWait):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// openTimeout bounds one attempt. A cluster without a leader does not answer, and nobody answers
// later.
const openTimeout = 3 * time.Second

// open tries to open a bucket once.
func (b *Broker) open(ctx context.Context, o *Bucket) (jetstream.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	kv, err := b.Stream.KeyValue(ctx, o.Name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		// by another process
		if err = b.create(ctx, o.stream()); err == nil || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			kv, err = b.Stream.KeyValue(ctx, o.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", o.Name, err)
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", o.Name, err)
	}
	if status.TTL() != o.TTL {
		return nil, fmt.Errorf("%w: the bucket %s keeps its keys for %v, not for %v: nats.lease must be the same for "+
			"all, and so must the version; to change them, stop all and delete the bucket", errOther, o.Name,
			status.TTL(), o.TTL)
	}
	stored := status.(*jetstream.KeyValueBucketStatus).StreamInfo().Config.Replicas
	if o.Replicas > 0 && stored != o.Replicas {
		return nil, fmt.Errorf("%w: the bucket %s is stored with %d replicas, not with %d: nats.replicas must be the "+
			"same for all, or missing; to change it, stop all and run nats stream edit KV_%[2]s --replicas %[4]d",
			errOther, o.Name, stored, o.Replicas)
	}
	o.Replicas = stored
	return kv, nil
}

// usualReplicas is how many servers of a cluster store a bucket if nobody says it.
const usualReplicas = 3

// create makes the stream of a bucket.
func (b *Broker) create(ctx context.Context, c jetstream.StreamConfig) error {
	if b.Embedded() && c.MaxAge > 0 {
		c.Storage = jetstream.MemoryStorage
	}
	if c.Replicas == 0 && b.Conn.ConnectedClusterName() != "" {
		c.Replicas = usualReplicas
	}
	_, err := b.Stream.CreateStream(ctx, c)
	return err
}

// stream returns the stream of a bucket, as clients of NATS make it. Its first number is new: epochs
// are such numbers, and those of a bucket that is made again must be higher than those before.
func (o *Bucket) stream() jetstream.StreamConfig {
	window := 2 * time.Minute // in which NATS notices a message that is sent again
	if o.TTL > 0 {
		window = min(window, o.TTL)
	}
	return jetstream.StreamConfig{
		Name: "KV_" + o.Name, Description: o.About, Subjects: []string{"$KV." + o.Name + ".>"},
		FirstSeq:          uint64(time.Now().UnixMilli()),
		MaxMsgsPerSubject: 1, MaxBytes: -1, MaxMsgs: -1, MaxConsumers: -1, MaxAge: o.TTL, MaxMsgSize: o.MaxValue,
		Storage: jetstream.FileStorage, Replicas: o.Replicas,
		AllowRollup: true, AllowMsgTTL: o.TTL == 0, DenyDelete: true, AllowDirect: true, Duplicates: window,
		Discard: jetstream.DiscardNew,
	}
}
