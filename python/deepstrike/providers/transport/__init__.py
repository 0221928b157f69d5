"""All the network there is: connections, time limits, retries, the circuit breaker."""
