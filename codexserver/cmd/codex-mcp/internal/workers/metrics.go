package workers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// metricsPath is where a worker's metrics are read, by its pool alone.
	metricsPath = "/metrics"
	// metricsLimit is how long a worker may take for them.
	metricsLimit = 2 * time.Second
	// maxMetrics bounds their length.
	maxMetrics = 4 << 20
)

// Metrics returns the metrics of the workers that run, by user. A worker that does not
// answer in time is left out.
func (p *Pool) Metrics(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, metricsLimit)
	defer cancel()
	running := map[string]*worker{}
	p.mu.Lock()
	for name, s := range p.seats {
		if s.worker != nil && s.worker.alive() {
			running[name] = s.worker
		}
	}
	p.mu.Unlock()
	var mu sync.Mutex
	var reading sync.WaitGroup
	texts := map[string]string{}
	for name, w := range running {
		reading.Go(func() {
			text, err := readMetrics(ctx, w)
			if err != nil {
				p.log.Debug("no metrics", "principal", name, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			texts[name] = text
		})
	}
	reading.Wait()
	return texts
}

// readMetrics reads the metrics of a worker.
func readMetrics(ctx context.Context, w *worker) (string, error) {
	conn, err := w.dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+metricsPath, nil)
	if err != nil {
		return "", err
	}
	answer, err := transport{}.RoundTrip(r.WithContext(context.WithValue(ctx, passageKey{}, &passage{conn: conn})))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", errors.New(answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxMetrics+1))
	if err == nil && len(text) > maxMetrics {
		err = errors.New("they are too long")
	}
	return string(text), err
}

// Handler returns what serves the requests of clients with next, and the pool's own with
// metrics. The pool names the principal of each request that comes from a client, and
// removes the header that a client wrote. So no client reads metrics, whatever the path.
func (l *Link) Handler(next, metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == metricsPath && len(r.Header.Values(principalHeader)) == 0 {
			metrics.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
