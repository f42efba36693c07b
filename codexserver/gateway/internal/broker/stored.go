package broker

import (
	"context"
	"time"
)

// Stored is how NATS stores a stream.
type Stored struct {
	// Stream is its name.
	Stream string `json:"stream"`
	// Replicas is how many servers are to store it. 0 means that NATS does not tell, for example
	// because too many of them are lost.
	Replicas int `json:"replicas"`
	// Current is how many of them have all of it now.
	Current int `json:"current"`
}

// StreamName returns the name of the stream of a bucket.
func StreamName(bucket string) string { return "KV_" + bucket }

// storedTimeout bounds the question about one stream. One that is lost may not answer.
const storedTimeout = 2 * time.Second

// Stored returns how NATS stores streams, in their order.
func (b *Broker) Stored(ctx context.Context, streams ...string) []Stored {
	all := make([]Stored, len(streams))
	for i, name := range streams {
		all[i] = b.stored(ctx, name)
	}
	return all
}

func (b *Broker) stored(ctx context.Context, name string) Stored {
	s := Stored{Stream: name}
	ctx, cancel := context.WithTimeout(ctx, storedTimeout)
	defer cancel()
	stream, err := b.Stream.Stream(ctx, name)
	if err != nil {
		return s
	}
	info := stream.CachedInfo()
	s.Replicas = info.Config.Replicas
	if info.Cluster == nil || info.Cluster.Leader != "" { // the leader, or the only server
		s.Current = 1
	}
	if info.Cluster != nil {
		for _, peer := range info.Cluster.Replicas {
			if peer.Current && !peer.Offline {
				s.Current++
			}
		}
	}
	return s
}
