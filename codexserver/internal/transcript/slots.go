package transcript

import (
	"os"
)

// slots are regions of the size of a piece in a file without a name. The store's mutex
// guards them.
type slots struct {
	folder string
	file   *os.File // nil before the first is taken
	free   []int64
	next   int64
}

// take returns a free slot. It fails if the file cannot be made.
func (s *slots) take() (int64, error) {
	if s.file == nil {
		f, err := nameless(s.folder)
		if err != nil {
			return -1, err
		}
		s.file = f
	}
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot, nil
	}
	s.next++
	return s.next - 1, nil
}

func (s *slots) release(slot int64) { s.free = append(s.free, slot) }

func (s *slots) write(slot int64, at int, part string) error {
	_, err := s.file.WriteAt([]byte(part), slot*pieceSize+int64(at))
	return err
}

func (s *slots) read(slot int64, size int) ([]byte, error) {
	b := make([]byte, size)
	_, err := s.file.ReadAt(b, slot*pieceSize)
	return b, err
}
