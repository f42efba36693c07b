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
	// Replicas is how many servers of a cluster store it.
	Replicas int
	// MaxValue bounds a value, in bytes.
	MaxValue int32
}

// errOther means that a bucket has another configuration.
var errOther = errors.New("another configuration")

// Open opens a bucket, and makes it if it does not exist. While NATS cannot do that, it tries
// again until ctx ends: a cluster that starts has no leader, or not enough servers, at first. It
// fails if the bucket has another TTL. The server of this process keeps it in memory, because
// only this process uses it.
func (b *Broker) Open(ctx context.Context, o Bucket) (jetstream.KeyValue, error) {
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

// open tries to open a bucket once.
func (b *Broker) open(ctx context.Context, o Bucket) (jetstream.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c := jetstream.KeyValueConfig{
		Bucket: o.Name, Description: o.About, TTL: o.TTL, Replicas: o.Replicas, Storage: jetstream.FileStorage, MaxValueSize: o.MaxValue, History: 1,
	}
	if b.Embedded() {
		c.Replicas, c.Storage = 1, jetstream.MemoryStorage
	}
	kv, err := b.Stream.CreateKeyValue(ctx, c)
	if errors.Is(err, jetstream.ErrBucketExists) {
		kv, err = b.Stream.KeyValue(ctx, o.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", o.Name, err)
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", o.Name, err)
	}
	if status.TTL() != o.TTL {
		return nil, fmt.Errorf("%w: the bucket %s keeps its keys for %v, not for %v: nats.lease must be the same for all; to change it, stop all and delete the bucket", errOther, o.Name, status.TTL(), o.TTL)
	}
	return kv, nil
}
