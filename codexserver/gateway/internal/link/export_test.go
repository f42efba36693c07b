package link

// Mute makes a client silent, as if its process were killed.
func Mute(c *Client) {
	c.stop()
	c.running.Wait()
}

// MuteServer makes a server silent.
func MuteServer(s *Server) {
	s.stop()
	s.running.Wait()
}
