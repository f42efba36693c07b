package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// metricsPath is the path of a worker's metrics. Only the pool can read them.
	metricsPath = "/metrics"
	// metricsTimeout limits the time that a worker has to send its metrics.
	metricsTimeout = 2 * time.Second
	// maxMetrics limits the length of a worker's metrics, in bytes.
	maxMetrics = 4 << 20
)

// Metrics returns the metrics of the running workers, by user. It leaves out a worker that
// does not answer in time.
func (p *Pool) Metrics(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	running := map[string]*worker{}
	p.mu.Lock()
	for name, s := range p.slots {
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
				p.log.Debug("metrics of worker unavailable", "principal", name, "error", err)
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
	answer, err := transport{}.RoundTrip(r.WithContext(context.WithValue(ctx, admissionKey{}, &admission{conn: conn})))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", errors.New(answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxMetrics+1))
	if err == nil && len(text) > maxMetrics {
		err = fmt.Errorf("the metrics are longer than %d bytes", maxMetrics)
	}
	return string(text), err
}

// Handler returns a handler that passes the requests of clients to next, and the pool's own
// requests to metrics. The pool sets the principal header on each request of a client, and
// replaces one that the client has set. So clients cannot read metrics by any path.
func (l *Link) Handler(next, metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == metricsPath && len(r.Header.Values(principalHeader)) == 0 {
			metrics.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
