package intake

import "sync"

// bufferSize is the size of a buffer, in bytes.
const bufferSize = 32 << 10

// Buffers are buffers for copying answers, which answers use one after another. The zero value is ready to use. It is an
// [httputil.BufferPool], and safe for concurrent use.
type Buffers struct{ unused sync.Pool }

// Get returns a buffer, which may have the bytes of another answer.
func (b *Buffers) Get() []byte {
	if p, ok := b.unused.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

// Put takes a buffer back.
func (b *Buffers) Put(p []byte) { b.unused.Put((*[bufferSize]byte)(p)) }
