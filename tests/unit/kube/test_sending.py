from hansa.kube import sending


def test_reads_are_sent_in_any_case():
    with sending.only_while(lambda: False):
        assert sending.check_of("GET", lambda: False) is None


def test_writes_have_no_check_by_default():
    assert sending.check_of("POST", None) is None


def test_the_check_counts_when_the_request_is_sent_not_when_it_is_made():
    answers = {"may": True}
    with sending.only_while(lambda: answers["may"]):
        check = sending.check_of("PATCH", None)
    assert check()
    answers["may"] = False
    assert not check()


def test_the_check_of_the_client_counts_as_well():
    with sending.only_while(lambda: True):
        assert not sending.check_of("PUT", lambda: False)()
        assert sending.check_of("PUT", lambda: True)()
