"""`scoreline observe`: a workload under Prometheus, and the values of every dashboard panel."""
