package worker

// ConnectOver returns the link of a worker over a connection.
var ConnectOver = connect
